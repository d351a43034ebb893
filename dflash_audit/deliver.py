"""The report to every output: files, and stdout."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace

from dflash_audit.atomic_write import unwritable, write_atomically
from dflash_audit.errors import Unreadable
from dflash_audit.formats import pieces, render
from dflash_audit.formats.output import Output
from dflash_audit.formats.screen import Screen
from dflash_audit.report import Report


def deliver(
    report: Report, outputs: Sequence[Output], screen: Screen, show: Callable[..., None]
) -> tuple[Report, list[str]]:
    """Write the report to every output, what is for stdout by `show`, in pieces.

    The first output is the one that stdout gets if it has no file, or if its file does not
    take it; it is written last, and tells as the report's error what could not be written
    before. Returns that report, and a line on each thing that could not be done.
    """
    first, *others = outputs
    told = [report.error.message] if report.error else []
    for output in (*others, first):
        failed = [_into_file(report, output, screen)] if output.file is not None else []
        for error in (*failed, _into_summary(report, output)):
            if error is not None:
                told.append(error.message)
                report = replace(report, error=report.error or error)
        if output is first and (output.file is None or failed != [None]):
            _show(report, output.format, screen, show)
    return report, told


def _show(report: Report, name: str, screen: Screen, show: Callable[..., None]) -> None:
    """On stdout; of a source that could not be read a person is told on stderr alone."""
    if report.checkpoint is not None or name != "text":
        show(*pieces(name, report, screen))


def _into_file(report: Report, output: Output, screen: Screen) -> Unreadable | None:
    """What kept the file from being written; None where it was."""
    assert output.file is not None
    text = render(output.format, report, screen._replace(color=False))
    try:
        write_atomically(output.file, f"{text}\n")
    except OSError as error:
        return unwritable(output.file, error)
    return None


def _into_summary(report: Report, output: Output) -> Unreadable | None:
    """GitHub's commands come with the summary of the job, where GitHub has named its file."""
    if output.format != "github":
        return None
    # Only here: most audits do without.
    from dflash_audit.formats.github import SUMMARY, add_summary

    path = os.environ.get(SUMMARY)
    try:
        if path:
            add_summary(report, path)
    except OSError as error:
        return unwritable(path or SUMMARY, error)
    return None
