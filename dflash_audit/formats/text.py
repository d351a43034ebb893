"""The report as plain text, for a person in a terminal."""

import textwrap
from collections.abc import Iterator
from typing import Final

from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding, Severity
from dflash_audit.formats.clean import clean
from dflash_audit.report import Report

WIDTH: Final = 100

WORDS: Final = {
    "pass": "serves",
    "warn": "serves, with warnings",
    "fail": "does not serve",
    "skipped": "not replayed",
}


def render(report: Report) -> str:
    """The verdicts, then the findings of each engine, then the summary."""
    lines = [f"dflash-audit {clean(report.source)}", "", *_verdicts(report)]
    for run in report.runs:
        lines += _section(
            report, run.engine, f"{run.engine}{'' if run.engine in report.gating else ' (does not gate)'}"
        )
    lines += _section(report, None, "all engines")
    return "\n".join([*lines, "", _summary(report)])


def _verdicts(report: Report) -> Iterator[str]:
    width = max(len(run.engine) for run in report.runs)
    for run in report.runs:
        said = report.verdict(run)
        yield f"  {run.engine:{width}}  {said:7}  {_why(report, run, WORDS[said])}"


def _why(report: Report, run: EngineRun, words: str) -> str:
    built = clean(f"{run.model_class or 'no class'}, {run.quantization or 'dense'}")
    if run.skipped is not None:
        return f"{words}: {clean(run.skipped)}"
    errors = [finding for finding in report.of_engine(run.engine) if finding.severity == "error"]
    reason = f": {errors[0].rule}, {clean(errors[0].subject)}" if errors else ""
    return f"{words} ({built}){reason}"


def _section(report: Report, engine: str | None, title: str) -> Iterator[str]:
    findings = list(report.of_engine(engine))
    if findings:
        yield ""
        yield title
        for finding in findings:
            yield from _finding(finding)


def _finding(finding: Finding) -> Iterator[str]:
    times = f" (x{finding.count})" if finding.count > 1 else ""
    yield f"  {finding.severity} {finding.rule}: {clean(finding.subject)}{times}"
    yield from _wrapped(finding.message)
    if finding.hint:
        yield from _wrapped("-> " + finding.hint)


def _wrapped(text: str) -> list[str]:
    indent = " " * 6
    return textwrap.wrap(
        clean(text), WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )


def _summary(report: Report) -> str:
    engines = ", ".join(run.engine for run in report.runs if run.engine in report.gating)
    counts = ", ".join(_counted(report.counts[severity], severity) for severity in report.counts)
    return f"{counts} on what gates ({engines}); exit code {report.exit_code}"


def _counted(number: int, severity: Severity) -> str:
    return f"{number} {severity}{'' if number == 1 else 's'}"
