"""The report as Markdown, made for a model card, a discussion on the Hub, or the summary of a CI job.

A table holds the audit's own words alone; names stand in code spans beside it, where no `|` ends a cell.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from dflash_audit import __version__
from dflash_audit.finding import Severity
from dflash_audit.formats.clean import clean
from dflash_audit.formats.inert_markdown import block, code, prose
from dflash_audit.formats.outline import (
    WORDS,
    Alike,
    Outline,
    Row,
    Section,
    beside,
    described,
    mend,
    outline,
    summary,
    tally,
)
from dflash_audit.formats.screen import Screen
from dflash_audit.formats.told import Step
from dflash_audit.report import Report
from dflash_audit.verdict import Verdict

MOST: Final = 60_000
"""Characters: GitHub takes 65,536 in a comment, and a reader fewer."""

MOST_OF_STEPS: Final = 10_000
"""So many of them are left to what comes after the findings."""

MOST_NAMED: Final = 10
"""Subjects of which the same is said."""

MARKS: Final[dict[Verdict, str]] = {"pass": "✅", "warn": "⚠️", "fail": "❌", "skipped": "❔"}
WORST_FIRST: Final[tuple[Verdict, ...]] = ("fail", "skipped", "warn", "pass")


def render(report: Report, screen: Screen) -> str:
    """The whole report, cut between two findings where it would be too long for a comment."""
    del screen
    return page(report, MOST)


def page(report: Report, most: int) -> str:
    """The report in about so many characters, cut between two findings."""
    if report.checkpoint is None:
        return _joined([_heading("not audited"), *_error(report), _footer(report)])
    parts = outline(report)
    before = [_heading(_verdict(parts.rows)), _source(report), *_error(report), _table(parts.rows)]
    after = [*_warmups(report), *_next(parts), *_not_judged(parts), _footer(report, parts)]
    room = most - sum(len(text) + 2 for text in (*before, *after))
    return _joined([*before, *_sections(parts.sections, room), *after])


def _joined(blocks: Iterable[str]) -> str:
    return "\n\n".join(blocks)


def _heading(verdict: str) -> str:
    return f"## DFlash draft audit: {verdict}"


def _verdict(rows: Sequence[Row]) -> str:
    """The worst of the deciding engines'."""
    verdicts = {row.verdict for row in rows if row.counts}
    return next((WORDS[verdict] for verdict in WORST_FIRST if verdict in verdicts), "not judged")


def _source(report: Report) -> str:
    assert report.checkpoint is not None
    commit = report.checkpoint.origin.commit
    at = f" at {code(commit)}" if commit else ""
    target = report.conditions.target
    told = f", beside {prose(beside(target))}" if target else ""
    return f"{code(report.origin.id)}{at}: {prose(described(report.checkpoint, report.runs))}{told}"


def _error(report: Report) -> list[str]:
    return [f"**Not everything could be done:** {prose(report.error.message)}"] if report.error else []


def _table(rows: Iterable[Row]) -> str:
    lines = ["| engine | verdict | because of |", "|---|---|---|"]
    for row in rows:
        version = f" {code(row.run.version.replace('|', '/'))}" if row.run.version else ""
        name = f"**{row.run.engine}**" if row.counts else f"{row.run.engine} (does not count)"
        cause = f"{row.cause.severity} `{row.cause.rule}`" if row.cause else ""
        cause += f" ({row.cause.waived})" if row.cause and row.cause.waived else ""
        cause += f" {row.at}" if row.at else ""
        lines.append(f"| {name}{version} | {MARKS[row.verdict]} {WORDS[row.verdict]} | {cause} |")
    return "\n".join(lines)


def _sections(sections: Iterable[Section], room: int) -> Iterator[str]:
    """As many of the findings as there is room for, those that count first, and a line on the others."""
    left: list[Severity] = []
    for section in sorted(sections, key=lambda section: not section.counts):
        opening, closing = _around(section)
        room -= len(opening) + len(closing) + 4
        shown = []
        # A section may be folded away, so it says each mend itself.
        said: dict[str, str] = {}
        for of in section.rules:
            items = []
            for alike in of.alike:
                item = _item(alike, alike.subjects[0] if section.engines else of.rule, said)
                room -= len(item) + 1
                if room < 0:
                    left += [of.severity] * len(alike.subjects)
                else:
                    items.append(item)
            if items:
                title = f"**{of.severity}** `{of.rule}`" + (f" ({of.waived})" if of.waived else "")
                room -= len(title) + 4
                shown += [title, "\n".join(items)]
        if shown:
            yield from (opening, *shown, closing) if closing else (opening, *shown)
    if left:
        yield f"*Left out of this page: {tally(left, all_of_them=False)}; `--format json` has them all.*"


def _around(section: Section) -> tuple[str, str]:
    """What stands before and after the findings of a section: those that do not count are folded away."""
    if section.counts:
        return f"### {section.heading}", ""
    told = f"{section.heading}, which {section.uncounted}: {tally(section.severities, all_of_them=False)}"
    return f"<details><summary>{told}</summary>", "</details>"


def _item(alike: Alike, about: str, said: dict[str, str]) -> str:
    more = len(alike.subjects) - MOST_NAMED
    named = ", ".join(map(code, alike.subjects[:MOST_NAMED])) + (f" and {more} more" if more > 0 else "")
    fix = f"\\\n  **Fix:** {prose(mend(about, alike.hint, said))}" if alike.hint else ""
    return f"- {named}\\\n  {prose(alike.message)}{fix}"


def _warmups(report: Report) -> Iterator[str]:
    if not report.warmups:
        return
    # Only here: an audit without a warm-up does without.
    from dflash_audit.formats.warmup_text import WORDS as RUNS
    from dflash_audit.formats.warmup_text import sentences

    yield "### Warm-up"
    yield "\n".join(
        f"- **{warmup.engine}** {RUNS[warmup.verdict][0]}: {prose('; '.join(sentences(warmup)))}"
        for warmup in report.warmups
    )


def _next(parts: Outline) -> Iterator[str]:
    """What to do: mend the errors that count, or serve the draft."""
    for heading, steps in (("Next", parts.first), ("Then, if an error is left", parts.then)):
        if steps:
            yield f"### {heading}"
            yield "\n".join(_numbered(steps))
    if parts.serving is not None:
        yield f"### Serve it on {parts.serving.engine}"
        yield block([" \\\n    ".join(map(clean, parts.serving.serve))], "sh")


def _numbered(steps: Iterable[Step]) -> Iterator[str]:
    room = MOST_OF_STEPS
    for number, step in enumerate(steps, start=1):
        text = f"{number}. {', '.join(map(code, step.named))}{step.more}: {prose(step.mend)}"
        room -= len(text)
        if room < 0:
            return
        yield text


def _not_judged(parts: Outline) -> Iterator[str]:
    for run in parts.not_judged:
        yield f"Not judged on {run.engine}, which is no pass: {prose(run.skipped or '')}"


def _footer(report: Report, parts: Outline | None = None) -> str:
    counted = f"{summary(report, parts.counted)}, " if parts else ""
    return f"*{counted}exit code {report.exit_code}, dflash-audit {__version__}*"
