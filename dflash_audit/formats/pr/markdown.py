"""A review as the Markdown of a comment on its pull request: what changed, and the report, folded away."""

from collections.abc import Iterator, Sequence
from typing import Final

from dflash_audit.finding import Finding
from dflash_audit.formats.inert_markdown import code, prose
from dflash_audit.formats.markdown import MARKS, MOST, page
from dflash_audit.formats.pr.outline import (
    CHANGES,
    HEADINGS,
    changed,
    counted,
    merged,
    ordered,
    subject,
    verdict_words,
)
from dflash_audit.formats.told import Told
from dflash_audit.publishing.before_after import Comparison
from dflash_audit.publishing.review import Review
from dflash_audit.report import Report
from dflash_audit.verdict import Verdict

MOST_OF_CHANGES: Final = 20_000
"""Characters for what changed; the report gets the rest."""

MOST_NAMED: Final = 10
"""Subjects of one finding."""


def render(done: Review) -> str:
    """The whole comment, with the marker by which the next one finds it."""
    if done.pull_request is None or done.comparison is None or done.after is None:
        reason = done.error.message if done.error else "not audited"
        return f"## DFlash draft audit: not audited\n\n{prose(reason)}"
    parts = [
        done.pull_request.marker,
        f"## Pull request {done.number}: {changed(done.comparison)}",
        _sides(done),
        _table(done.comparison),
        *_changes(done.comparison),
    ]
    text = "\n\n".join(parts)
    report = page(done.after, MOST - len(text))
    summary = "The whole report of this pull request"
    return f"{text}\n\n<details><summary>{summary}</summary>\n\n{report}\n\n</details>"


def _sides(done: Review) -> str:
    assert done.pull_request is not None
    base = f"{code(done.pull_request.base)} ({_at(done.before)})"
    return f"{prose(subject(done))}, {code(done.pull_request.ref)} ({_at(done.after)}), held against {base}."


def _at(report: Report | None) -> str:
    if report is None or report.error is not None:
        told = f": {prose(report.error.message)}" if report and report.error else ""
        return f"not audited{told}"
    return f"commit {code(report.origin.commit or '')}"


def _table(comparison: Comparison) -> str:
    lines = ["| engine | before | with it | |", "|---|---|---|---|"]
    for each in ordered(comparison.engines):
        name = f"**{each.engine}**" if each.gating else f"{each.engine} (does not count)"
        lines.append(f"| {name} | {_cell(each.before)} | {_cell(each.after)} | {CHANGES[each.change]} |")
    return "\n".join(lines)


def _cell(verdict: Verdict | None) -> str:
    mark = f"{MARKS[verdict]} " if verdict else ""
    return f"{mark}{verdict_words(verdict)}"


def _changes(comparison: Comparison) -> Iterator[str]:
    room = MOST_OF_CHANGES
    for kind, findings in comparison.kinds:
        if not findings:
            continue
        if kind == "stayed":
            yield f"**{HEADINGS[kind]}:** {counted(findings, comparison)}."
            continue
        yield f"### {HEADINGS[kind]}"
        items, room = _items(findings, comparison, room)
        yield items


def _items(findings: Sequence[Finding], comparison: Comparison, room: int) -> tuple[str, int]:
    """As many as there is room for, and the room that is left."""
    items: list[str] = []
    listed = merged(findings, comparison)
    for number, each in enumerate(listed):
        item = _item(each)
        room -= len(item) + 1
        if room < 0:
            items.append(f"- and {len(listed) - number} more")
            break
        items.append(item)
    return "\n".join(items), room


def _item(each: Told) -> str:
    finding = each.finding
    names = finding.subjects or (finding.subject,)
    more = len(names) - MOST_NAMED
    named = ", ".join(map(code, names[:MOST_NAMED])) + (f" and {more} more" if more > 0 else "")
    on = f" on {', '.join(each.engines)}" if each.engines else ""
    known = " (known)" if finding.waived else ""
    title = f"- **{finding.severity}** `{finding.rule}`{known}{on}: {named}"
    return f"{title}\\\n  {prose(finding.message)}"
