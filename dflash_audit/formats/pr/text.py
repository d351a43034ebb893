"""A review for a person in a terminal: the verdicts before and after, what is new, what is gone."""

from collections.abc import Iterator
from typing import Final

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dflash_audit.formats.clean import clean
from dflash_audit.formats.console import Part, written
from dflash_audit.formats.pr.outline import (
    CHANGES,
    HEADINGS,
    changed,
    counted,
    merged,
    ordered,
    side,
    subject,
    verdict_words,
)
from dflash_audit.formats.screen import Screen
from dflash_audit.formats.text import COLORS, VERDICT_COLORS
from dflash_audit.formats.told import Told
from dflash_audit.publishing.before_after import Change, Comparison
from dflash_audit.publishing.review import Review
from dflash_audit.verdict import Verdict

CHANGE_COLORS: Final[dict[Change, str]] = {"better": "green", "worse": "red"}


def render(done: Review, screen: Screen) -> str:
    """The whole review as lines that fit the screen."""
    return written(_parts(done), screen)


def _parts(done: Review) -> Iterator[Part]:
    yield Text(clean(subject(done)), style="bold")
    if done.pull_request is None or done.comparison is None:
        return
    yield Text(
        f"{clean(done.pull_request.status)}; {clean(done.pull_request.base)}, {clean(side(done.before))}",
        "dim",
    )
    yield Text(f"{done.pull_request.ref}, {clean(side(done.after))}", "dim")
    yield Text()
    yield _verdicts(done.comparison)
    yield from _changes(done.comparison)
    yield Text()
    yield Text(
        f"{changed(done.comparison)}; see all of it: dflash-audit {clean(done.repo.name)}"
        f" --revision {done.pull_request.ref}",
        "dim",
    )
    yield Text(f"exit code {done.exit_code}", style="dim")


def _verdicts(comparison: Comparison) -> Table:
    table = Table.grid(padding=(0, 2))
    for each in ordered(comparison.engines):
        aside = "" if each.gating else " (does not count)"
        table.add_row(
            Text(f"  {each.engine}"),
            _words(each.before),
            _words(each.after),
            Text(CHANGES[each.change], CHANGE_COLORS.get(each.change, "")).append(aside, "dim"),
        )
    return table


def _words(verdict: Verdict | None) -> Text:
    return Text(verdict_words(verdict), VERDICT_COLORS[verdict] if verdict else "dim")


def _changes(comparison: Comparison) -> Iterator[Part]:
    for kind, findings in comparison.kinds:
        if not findings:
            continue
        yield Text()
        if kind == "stayed":
            yield Text.assemble((HEADINGS[kind], "bold"), f": {counted(findings, comparison)}")
            continue
        yield Text(HEADINGS[kind], style="bold")
        for each in merged(findings, comparison):
            yield from _finding(each)


def _finding(each: Told) -> Iterator[Part]:
    finding = each.finding
    yield Text.assemble(
        "  ",
        (finding.severity, COLORS[finding.severity]),
        " ",
        (finding.rule, "bold"),
        " (known)" if finding.waived else "",
        f", {', '.join(each.engines)}" if each.engines else "",
    )
    yield Padding(Text(clean(finding.subject), style="cyan"), (0, 0, 0, 4))
    yield Padding(Text(clean(finding.message)), (0, 0, 0, 6))
