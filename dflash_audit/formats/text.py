"""The report for a person in a terminal: the verdicts, what was found, what to do next."""

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dflash_audit.formats import tree_text, warmup_text
from dflash_audit.formats.clean import clean
from dflash_audit.formats.console import WIDEST, Part, written
from dflash_audit.formats.outline import (
    WORDS,
    Outline,
    Row,
    Section,
    beside,
    described,
    mend,
    outline,
    summary,
)
from dflash_audit.formats.screen import Screen
from dflash_audit.report import Report
from dflash_audit.verdict import Verdict

COLORS: Final = {"error": "bold red", "warning": "yellow", "note": "blue"}
VERDICT_COLORS: Final[dict[Verdict, str]] = {
    "pass": "bold green",
    "warn": "bold yellow",
    "fail": "bold red",
    "skipped": "dim",
}


def render(report: Report, screen: Screen) -> str:
    """The whole report as lines that fit the screen."""
    return written(_parts(report, screen), screen)


def _parts(report: Report, screen: Screen) -> Iterator[Part]:
    """The report from top to bottom."""
    yield from _heading(report)
    parts = outline(report)
    if report.checkpoint is not None:
        yield from _audited(report, parts, screen)
    elif report.error is not None:
        yield Text(f"not audited: {clean(report.error.message)}", style="bold red")
    yield Text(f"exit code {report.exit_code}", style="dim")


def _audited(report: Report, parts: Outline, screen: Screen) -> Iterator[Part]:
    yield _verdicts(parts.rows, min(screen.width, WIDEST))
    said: dict[str, str] = {}
    for section in parts.sections:
        yield from _section(section, said)
    if report.warmups:
        yield from warmup_text.parts(report.warmups)
    if screen.verbose:
        for row in parts.rows:
            if row.counts:
                yield Text()
                yield from tree_text.lines(row.run)
    yield Text()
    yield from _next(parts)
    yield from _not_judged(parts)
    yield Text(summary(report, parts.counted), style="dim")


def _heading(report: Report) -> Iterator[Text]:
    yield Text(clean(report.origin.id), style="bold")
    read = report.checkpoint
    if read is None:
        return
    yield Text(clean(described(read, report.runs)), style="dim")
    if told := beside(report.conditions.target):
        yield Text(f"beside {clean(told)}", style="dim")
    yield Text(f"commit {read.origin.commit}\n" if read.origin.commit else "", style="dim")


GAP: Final = 2
"""Columns between two of the table."""


def _verdicts(rows: Sequence[Row], width: int) -> Table:
    table = Table.grid(padding=(0, GAP))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column()
    names = [_name(row) for row in rows]
    room = width - max(map(len, names)) - max(len(WORDS[row.verdict]) for row in rows) - 2 * GAP
    for row, name in zip(rows, names, strict=True):
        words = Text(WORDS[row.verdict], style=VERDICT_COLORS[row.verdict])
        table.add_row(Text(name), words, Text(_whole(_why(row), "" if row.counts else UNCOUNTED, room)))
    return table


UNCOUNTED: Final = "(does not count)"


def _name(row: Row) -> str:
    run = row.run
    return f"  {run.engine} {clean(run.version)}" if run.version else f"  {run.engine}"


def _whole(why: str, aside: str, room: int) -> str:
    """A reason and what is said beside it, which stands on a line of its own rather than on two."""
    if not why or not aside:
        return why or aside
    return f"{why} {aside}" if len(why) + 1 + len(aside) <= room else f"{why}\n{aside}"


def _why(row: Row) -> str:
    if row.run.skipped is not None:
        return clean(row.run.skipped)
    if row.cause is None:
        return ""
    waived = f" ({row.cause.waived})" if row.cause.waived else ""
    at = f"{row.at}, " if row.at else ""
    return f"{at}{row.cause.rule}: {clean(row.cause.subject)}{waived}"


def _section(section: Section, said: dict[str, str]) -> Iterator[RenderableType]:
    """The findings of some engines; `said` has each mend that stands above, and what for."""
    aside = "" if section.counts else f" ({section.uncounted})"
    yield Text(f"\n{section.heading}{aside}", style="bold")
    for of in section.rules:
        yield Text.assemble(
            "  ",
            (of.severity, COLORS[of.severity]),
            " ",
            (of.rule, "bold"),
            f" ({of.waived})" if of.waived else "",
        )
        for alike in of.alike:
            for subject in alike.subjects:
                yield _indented(4, Text(clean(subject), style="cyan"))
            yield _indented(6, Text(clean(alike.message)))
            if alike.hint:
                about = alike.subjects[0] if section.engines else of.rule
                yield _indented(6, Text.assemble(("fix: ", "green"), clean(mend(about, alike.hint, said))))


def _indented(columns: int, text: Text) -> Padding:
    return Padding(text, (0, 0, 0, columns), expand=False)


def _next(parts: Outline) -> Iterator[Part]:
    """What to do: mend the errors that count, or serve the draft."""
    for heading, mends in (("Next", parts.first), ("Then, if an error is left", parts.then)):
        if mends:
            yield Text(heading, style="bold")
            yield _numbered([clean(str(step)) for step in mends])
            yield Text()
    if parts.first:
        yield Text("dflash-audit fix SOURCE looks for the smallest change of config.json that serves.\n")
    if parts.serving is not None:
        yield Text(f"Serve it on {parts.serving.engine} with", style="bold")
        yield " \\\n".join(f"    {clean(option)}" for option in parts.serving.serve) + "\n", ""


def _numbered(steps: Sequence[str]) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column()
    for number, step in enumerate(steps, start=1):
        table.add_row(f"  {number}.", Text(step))
    return table


def _not_judged(parts: Outline) -> Iterator[Text]:
    for run in parts.not_judged:
        assert run.skipped is not None
        yield Text(f"Not judged on {run.engine}, which is no pass: {clean(run.skipped)}\n", style="yellow")
