"""The report as one HTML file to look at: verdicts, a map of every module, findings. It loads nothing.

The written parts stand in the markup and need no script; the map is drawn by the
scripts in `js/` from one JSON element. The file is ASCII, so it is the same in any encoding.
"""

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from typing import Final

from dflash_audit.formats.html.cells import Box, boxes
from dflash_audit.formats.html.data import document, embedded
from dflash_audit.formats.html.markup import Markup, element, joined
from dflash_audit.formats.html.sections import (
    engine_name,
    findings,
    heading,
    in_order,
    next_steps,
    verdicts,
)
from dflash_audit.formats.html.states import STATES
from dflash_audit.formats.html.table import table
from dflash_audit.formats.html.warmup import warmups
from dflash_audit.formats.screen import Screen
from dflash_audit.formats.told import told
from dflash_audit.report import Report

SCRIPTS: Final = ("squarify", "model", "folding", "words", "map", "inspector", "filter", "keys", "start")
"""The scripts of the page, each with what stands before it in scope."""

ICON: Final = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 8 8'%3E"
    "%3Cpath fill='%2356a0c4' d='M0 0h5v5H0z'/%3E%3Cpath fill='%23d55e00' d='M5.5 0H8v3H5.5z'/%3E"
    "%3Cpath fill='%2356a0c4' d='M5.5 3.5H8V8H5.5zM0 5.5h5V8H0z'/%3E%3C/svg%3E"
)


def render(report: Report, screen: Screen) -> str:
    """One self-contained document, whatever the screen."""
    del screen
    runs = sorted(report.runs, key=lambda run: run.engine not in report.gating)
    found = in_order(report, told(report.findings, [run.engine for run in runs]))
    read = report.checkpoint
    shown = [(run, boxes(run, read.tensors, report.of_engine(run.engine))) for run in runs] if read else []
    style = _part("page.css")
    script = "(() => {\n" + "\n".join(_part(f"js/{name}.js") for name in SCRIPTS) + "})();\n"
    data = embedded(document([(run.engine, of_run) for run, of_run in shown], found))
    named = [(engine_name(run), of_run) for run, of_run in shown]
    page = element(
        "html",
        _head(report, style, script),
        element(
            "body",
            heading(report),
            element(
                "main",
                verdicts(report, shown),
                next_steps(report, found),
                element(
                    "div",
                    _map(named) if read else "",
                    findings(report, found),
                    warmups(report.warmups or ()),
                    _table(named) if read else "",
                    class_="beside",
                ),
            ),
            element("script", Markup(data), type="application/json", id="report") if read else "",
            element("script", Markup(script)) if read else "",
        ),
        lang="en",
    )
    return f"<!doctype html>\n{page}".encode("ascii", "xmlcharrefreplace").decode()


def _part(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="ascii")


def _head(report: Report, style: str, script: str) -> Markup:
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; img-src data:;"
        " base-uri 'none'; form-action 'none'"
    )
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=Markup(policy)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", f"dflash-audit: {report.origin.id}"),
        element("link", rel="icon", href=Markup(ICON)),
        element("style", Markup(style)),
    )


def _hash(text: str) -> str:
    """The source of a content security policy that lets this text alone run."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _map(engines: Sequence[tuple[str, Sequence[Box]]]) -> Markup:
    """The frame of the map, shown once a script fills it."""
    legend = [
        element(
            "button",
            element("i", state.letter, class_=f"swatch {state.id}", aria_hidden="true"),
            element("span", state.word),
            element("b"),
            type="button",
            class_="state",
            data_state=str(index),
            aria_pressed="false",
            title=state.meaning,
        )
        for index, state in enumerate(STATES)
    ]
    search = element(
        "input",
        type="search",
        id="search",
        placeholder="Search names, dtypes, schemes   ( / )",
        aria_label="Search the cells",
        autocomplete="off",
        spellcheck="false",
    )
    return joined(
        element(
            "section",
            element("h2", "Module map"),
            element(
                "p",
                "A cell is a parameter, a shard of a fused one, or a tensor that goes nowhere; its area is"
                " its bytes, and the smallest stay visible. One place is one module on every engine.",
                class_="lead",
            ),
            element(
                "div",
                search,
                element("button", type="button", id="fold", hidden=""),
                element("output", id="matches", for_="search"),
                class_="tools",
            ),
            element("div", *legend, class_="legend", role="group", aria_label="Show only these states"),
            element("div", id="map"),
            element(
                "p",
                "Arrow keys walk the cells, Tab the strips; Enter opens a cell, / searches, Esc steps back.",
                class_="keys",
            ),
            element("aside", id="inspector", hidden="", tabindex="-1", aria_label="Cell"),
            element("div", id="tip", hidden="", role="tooltip"),
            id="map-section",
            hidden="",
        ),
        element("noscript", element("p", "The map needs scripts; the table below says the same.")),
    )


def _table(engines: Sequence[tuple[str, Sequence[Box]]]) -> Markup:
    summary = element("summary", "Every parameter and lost tensor as a table")
    return element("details", summary, element("div", table(engines), class_="scroll"), id="table", open="")
