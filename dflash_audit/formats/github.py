"""The findings that count as workflow commands of GitHub Actions, which become annotations of the run.

Source: GitHub's "Workflow commands for GitHub Actions", and @actions/core `command.ts` for what is escaped.
"""

import os
from collections.abc import Iterator, Sequence
from typing import Final

from dflash_audit.finding import SEVERITIES, Severity
from dflash_audit.formats.clean import clean
from dflash_audit.formats.outline import outline, tally
from dflash_audit.formats.place import Places
from dflash_audit.formats.screen import Screen
from dflash_audit.formats.told import Told
from dflash_audit.report import Report

COMMANDS: Final[dict[Severity, str]] = {"error": "error", "warning": "warning", "note": "notice"}

MOST: Final = 10
"""Annotations of one type that a step may make; of more, GitHub shows these and says nothing of the rest."""


def render(report: Report, screen: Screen) -> str:
    """A command a line, at most ten of a type, the last of them for how many more there are."""
    del screen
    return "\n".join(_commands(report))


def _commands(report: Report) -> Iterator[str]:
    places = Places(report)
    parts = outline(report)
    told: dict[Severity, list[str]] = {severity: [] for severity in SEVERITIES}
    if report.error is not None:
        told["error"].append(_command("error", "dflash-audit", None, clean(report.error.message)))
    for each in parts.counted:
        told[each.finding.severity].append(_annotation(each, places))
    for run in parts.not_judged:
        text = f"Not judged, which is no pass: {clean(run.skipped or '')}"
        if f"{run.engine}: {run.skipped}" not in report.strict_reasons:
            told["warning"].append(_command("warning", f"not judged on {run.engine}", None, text))
    for reason in report.strict_reasons:
        told["error"].append(_command("error", "not judged, which --strict fails", None, clean(reason)))
    for severity, commands in told.items():
        yield from _few(severity, commands)


def _few(severity: Severity, commands: Sequence[str]) -> Iterator[str]:
    if len(commands) <= MOST:
        yield from commands
        return
    yield from commands[: MOST - 1]
    left = tally([severity] * (len(commands) - MOST + 1), all_of_them=False)
    yield _command(COMMANDS[severity], f"{left} left out", None, "The job's summary has them all.")


def _annotation(told: Told, places: Places) -> str:
    finding = told.finding
    on = f" on {' and '.join(told.engines)}" if told.engines else ""
    lines = [f"{clean(finding.subject)}: {clean(finding.message)}"]
    lines += [f"Fix: {clean(finding.hint)}"] if finding.hint else []
    file = places.path(places.of(finding).file) if places.below_root else None
    return _command(COMMANDS[finding.severity], finding.rule + on, file, "\n".join(lines))


def _command(name: str, title: str, file: str | None, text: str) -> str:
    where = f",file={_property(file)}" if file else ""
    return f"::{name} title={_property(title)}{where}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


SUMMARY: Final = "GITHUB_STEP_SUMMARY"
"""The variable that names the file whose Markdown GitHub shows as the summary of a job."""

MOST_OF_SUMMARY: Final = 1024 * 1024
"""Bytes; of a larger one GitHub shows nothing at all."""


NO_ROOM: Final = "*The summary has no room left for the report of this audit.*"


def add_summary(report: Report, path: str) -> None:
    """Append the report as Markdown to the job's summary, or that it has no room left. Raises OSError."""
    # Only here: the commands alone do without.
    from dflash_audit.formats import markdown

    there = os.path.getsize(path) if os.path.exists(path) else 0
    for text in (markdown.render(report, Screen()), NO_ROOM):
        encoded = f"{text}\n\n".encode("utf-8", "backslashreplace")
        if there + len(encoded) <= MOST_OF_SUMMARY:
            with open(path, "ab") as file:
                file.write(encoded)
            return
