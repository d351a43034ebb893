"""The parts of the page that are read: heading, verdicts, what to do next, findings."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Final

from dflash_audit import __version__
from dflash_audit.byte_count import byte_count
from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import SEVERITIES, Finding
from dflash_audit.fold import enumerated
from dflash_audit.formats.html.cells import Box
from dflash_audit.formats.html.markup import Markup, element, joined
from dflash_audit.formats.html.states import STATES
from dflash_audit.formats.told import Told, steps
from dflash_audit.how_many import how_many
from dflash_audit.report import Report
from dflash_audit.several_sizes import listed
from dflash_audit.verdict import Verdict

WORDS: Final[dict[Verdict, tuple[str, str]]] = {
    "pass": ("\N{CHECK MARK}", "serves"),
    "warn": ("!", "serves, with warnings"),
    "fail": ("\N{MULTIPLICATION X}", "does not serve"),
    "skipped": ("\N{EN DASH}", "not replayed"),
}


def heading(report: Report) -> Markup:
    """What was audited, with what."""
    lines = [element("h1", report.origin.id)]
    read = report.checkpoint
    if read is not None:
        tensors = f"{how_many(len(read.tensors), 'tensor')} in {how_many(len(read.files), 'file')}"
        lines.append(
            element("p", f"{_what(report)}. {tensors}, {byte_count(read.bytes_total)}.", class_="about")
        )
    if report.origin.commit is not None:
        lines.append(element("p", "commit ", element("code", report.origin.commit), class_="about"))
    if report.error is not None:
        lines.append(element("p", report.error.message, class_="stopped", role="alert"))
    return element("header", element("p", f"dflash-audit {__version__}", class_="tool"), *lines)


def _what(report: Report) -> str:
    """The class and the quantization as the first engine that knows them says, or what config.json names."""
    classes = [run.model_class for run in report.runs if run.model_class]
    if not classes:
        config = report.checkpoint.config if report.checkpoint else {}
        return f"architectures {json.dumps(config.get('architectures'))}"
    methods = [run.quantization for run in report.runs if run.quantization]
    return f"{classes[0]}, {methods[0] if methods else 'dense'}"


def verdicts(report: Report, engines: Sequence[tuple[EngineRun, Sequence[Box]]]) -> Markup:
    """A card for each engine."""
    cards = [_card(report, run, boxes, index) for index, (run, boxes) in enumerate(engines)]
    return element("section", *cards, class_="verdicts", aria_label="Verdicts")


def _card(report: Report, run: EngineRun, boxes: Sequence[Box], index: int) -> Markup:
    verdict = report.verdict(run)
    sign, words = WORDS[verdict]
    gates = "" if run.engine in report.gating else "does not count"
    return element(
        "article",
        element("span", sign, class_="sign", aria_hidden="true"),
        element(
            "div",
            element("h2", engine_name(run), " ", element("small", gates) if gates else ""),
            element("p", words, class_="verdict"),
            element("p", _why(report, run), class_="why"),
            element("div", class_="share", data_engine=str(index)),
            element("p", _counted(boxes), class_="about"),
        ),
        class_=f"card {verdict}",
    )


def _counted(boxes: Sequence[Box]) -> str:
    """How many cells of each state: 9 dropped, 19 unfilled, 35 loaded."""
    states = Counter(cell.state for box in boxes for cell in box.cells)
    return ", ".join(f"{states[state]:,} {state.word}" for state in STATES if states[state])


def engine_name(run: EngineRun) -> str:
    return f"{run.engine} {run.version}" if run.version else run.engine


def _why(report: Report, run: EngineRun) -> str:
    """What stops it, or the first of what is found."""
    if run.skipped is not None:
        return run.skipped
    at = report.held_at(run)
    told = f"with {listed(at)}, " if at else ""
    if run.refusal is not None:
        return f"{told}stops at {run.refusal.stage.replace('_', ' ')}: {run.refusal.reason}"
    wanted = {"fail": "error", "warn": "warning"}.get(report.verdict(run))
    found = [finding for finding in report.of_engine(run.engine) if finding.severity == wanted]
    if not found:
        return ""
    # What is let pass is the cause only where nothing else is.
    cause = min(found, key=lambda finding: finding.waived is not None)
    return f"{told}{cause.rule}: {cause.subject}" + (f" ({cause.waived})" if cause.waived else "")


def next_steps(report: Report, told: Sequence[Told]) -> Markup:
    """What to do: mend what counts, or serve the draft."""
    decisive = [each.finding for each in told if counts(report, each)]
    counted = [finding for finding in decisive if finding.waived is None]
    if any(finding.severity == "error" for finding in counted):
        first, then = steps(finding for finding in counted if finding.severity != "note")
        lists = [
            joined(element("h2", title), element("ol", *(element("li", str(step)) for step in mends)))
            for title, mends in (("What to do next", first), ("Then, if an error is left", then))
            if mends
        ]
        return element("section", *lists, class_="next") if lists else Markup()
    serving = next((run for run in report.runs if run.engine in report.gating and run.serve), None)
    # What is let pass still keeps an engine from serving the draft.
    if serving is None or report.error is not None or any(f.severity == "error" for f in decisive):
        return Markup()
    command = Markup(" \\\n    ").join(joined(option) for option in serving.serve)
    return element(
        "section",
        element("h2", f"What to do next: serve it on {serving.engine}"),
        element("pre", element("code", Markup(command))),
        class_="next",
    )


def counts(report: Report, told: Told) -> bool:
    """Whether a finding decides: for an engine that gates, or for none."""
    return not told.engines or not report.gating.isdisjoint(told.engines)


def in_order(report: Report, told: Sequence[Told]) -> list[Told]:
    """Those that count first, each of them the worst first."""
    return sorted(told, key=lambda t: (not counts(report, t), SEVERITIES.index(t.finding.severity)))


def findings(report: Report, told: Sequence[Told]) -> Markup:
    """The list, in which a finding's place is its number."""
    title = element("h2", "Findings ", element("span", f"{len(told):,}", class_="count"))
    if not told:
        return element("section", title, element("p", "None."), id="findings")
    listed = [_finding(index, each, counts(report, each)) for index, each in enumerate(told)]
    return element("section", title, *listed, *_skips(report), id="findings")


def _finding(index: int, told: Told, counting: bool) -> Markup:
    finding = told.finding
    where = enumerated(told.engines) or "all engines"
    verb = "does" if len(told.engines) == 1 else "do"
    return element(
        "article",
        element(
            "h3",
            element("span", finding.severity, class_=f"pill {finding.severity}"),
            " ",
            element("code", finding.rule),
            f" ({finding.waived})" if finding.waived else "",
        ),
        element("p", where if counting else f"{where} ({verb} not count)", class_="where"),
        element("p", element("code", finding.subject), class_="subject"),
        element("p", finding.message),
        _hint(finding),
        id=f"finding-{index}",
        class_=f"finding {finding.severity}",
        data_finding=str(index),
        tabindex="-1",
    )


def _hint(finding: Finding) -> Markup:
    if not finding.hint:
        return Markup()
    return element("p", element("b", "Fix: "), finding.hint, class_="hint")


def _skips(report: Report) -> list[Markup]:
    if not report.skips:
        return []
    skipped = [element("li", element("code", skip.rule), f": {skip.reason}") for skip in report.skips]
    summary = element("summary", f"{len(skipped)} rules did not look")
    return [element("details", summary, element("ul", *skipped))]
