"""The report for a person in a terminal: the verdicts, what was found, what to do next."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dflash_audit.byte_count import byte_count
from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import SEVERITIES, Finding, Severity
from dflash_audit.formats import tree_text, warmup_text
from dflash_audit.formats.clean import clean
from dflash_audit.formats.console import Part, written
from dflash_audit.formats.screen import Screen
from dflash_audit.formats.told import sections, steps, told
from dflash_audit.report import Report
from dflash_audit.verdict import Verdict

COLORS: Final = {"error": "bold red", "warning": "yellow", "note": "blue"}
WORDS: Final[dict[Verdict, tuple[str, str]]] = {
    "pass": ("serves", "bold green"),
    "warn": ("serves, with warnings", "bold yellow"),
    "fail": ("does not serve", "bold red"),
    "skipped": ("not replayed", "dim"),
}


def render(report: Report, screen: Screen) -> str:
    """The whole report as lines that fit the screen."""
    return written(_parts(report, screen), screen)


def _parts(report: Report, screen: Screen) -> Iterator[Part]:
    """The report from top to bottom."""
    yield from _heading(report)
    yield _verdicts(report)
    findings = told(report.findings, [run.engine for run in _gating_first(report)])
    for engines, of_engines in sections(findings).items():
        yield from _section(report, engines, of_engines)
    if report.warmups:
        yield from warmup_text.parts(report.warmups)
    if screen.verbose:
        for run in _gating_first(report):
            if run.engine in report.gating:
                yield Text()
                yield from tree_text.lines(run)
    yield Text()
    counted = [each.finding for each in findings if _counts(report, each.engines)]
    yield from _next(report, counted)
    yield from _not_judged(report)
    yield Text(_summary(report, counted), style="dim")
    yield Text(f"exit code {report.exit_code}", style="dim")


def _counts(report: Report, engines: tuple[str, ...]) -> bool:
    """Whether what holds for these engines counts: for one that gates, or for none."""
    return not engines or not report.gating.isdisjoint(engines)


def _heading(report: Report) -> Iterator[Text]:
    yield Text(clean(report.origin.id), style="bold")
    read = report.checkpoint
    if read is None:
        return
    files = f"{len(read.files)} file{'' if len(read.files) == 1 else 's'}"
    sizes = f"{byte_count(read.bytes_read)} read of {byte_count(read.bytes_total)}"
    yield Text(
        f"{_what(report.runs, read.config)}, {len(read.tensors)} tensors in {files} ({sizes})", style="dim"
    )
    yield Text(f"commit {read.origin.commit}\n" if read.origin.commit else "", style="dim")


def _what(runs: Sequence[EngineRun], config: Mapping[str, Any]) -> str:
    """The class and the quantization as the last engine that knows them says, or what config.json names."""
    classes = [run.model_class for run in runs if run.model_class]
    if not classes:
        return clean(f"architectures {json.dumps(config.get('architectures'))}")
    methods = [run.quantization for run in runs if run.quantization]
    return clean(f"{classes[-1]}, {methods[-1] if methods else 'dense'}")


def _verdicts(report: Report) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column()
    for run in _gating_first(report):
        words, style = WORDS[report.verdict(run)]
        aside = "" if run.engine in report.gating else " (does not count)"
        name = f"{run.engine} {clean(run.version)}" if run.version else run.engine
        table.add_row(Text(f"  {name}"), Text(words, style=style), Text(_why(report, run) + aside))
    return table


def _why(report: Report, run: EngineRun) -> str:
    if run.skipped is not None:
        return clean(run.skipped)
    wanted = {"fail": "error", "warn": "warning"}.get(report.verdict(run))
    found = [finding for finding in report.of_engine(run.engine) if finding.severity == wanted]
    return f"{found[0].rule}: {clean(found[0].subject)}" if found else ""


def _gating_first(report: Report) -> list[EngineRun]:
    return sorted(report.runs, key=lambda run: run.engine not in report.gating)


def _section(report: Report, engines: tuple[str, ...], findings: list[Finding]) -> Iterator[RenderableType]:
    """The findings of a section; alike ones are told once for all of their subjects."""
    heading = " and ".join(engines) or "All engines"
    aside = "" if _counts(report, engines) else " (does not count)"
    yield Text(f"\n{heading}{aside}", style="bold")
    for (severity, rule), of_rule in groupby(findings, key=lambda f: (f.severity, f.rule)):
        yield Text.assemble("  ", (severity, COLORS[severity]), " ", (rule, "bold"))
        for (message, hint), alike in groupby(of_rule, key=lambda f: (f.message, f.hint)):
            for finding in alike:
                yield _indented(4, Text(clean(finding.subject), style="cyan"))
            yield _indented(6, Text(clean(message)))
            if hint:
                yield _indented(6, Text.assemble(("fix: ", "green"), clean(hint)))


def _indented(columns: int, text: Text) -> Padding:
    return Padding(text, (0, 0, 0, columns), expand=False)


def _next(report: Report, counted: Sequence[Finding]) -> Iterator[Part]:
    """What to do: mend the errors that count, or serve the draft."""
    if any(finding.severity == "error" for finding in counted):
        first, then = steps(finding for finding in counted if finding.severity != "note")
        for heading, mends in (("Next", first), ("Then, if an error is left", then)):
            if mends:
                yield Text(heading, style="bold")
                yield _numbered([clean(str(step)) for step in mends])
                yield Text()
        return
    serving = next((run for run in report.runs if run.engine in report.gating and run.serve), None)
    if serving is not None and report.error is None:
        yield Text(f"Serve it on {serving.engine} with", style="bold")
        yield " \\\n".join(f"    {clean(option)}" for option in serving.serve) + "\n", ""


def _numbered(steps: Sequence[str]) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column()
    for number, step in enumerate(steps, start=1):
        table.add_row(f"  {number}.", Text(step))
    return table


def _not_judged(report: Report) -> Iterator[Text]:
    for run in report.runs:
        if run.engine in report.gating and run.skipped is not None:
            yield Text(
                f"Not judged on {run.engine}, which is no pass: {clean(run.skipped)}\n", style="yellow"
            )


def _summary(report: Report, counted: Sequence[Finding]) -> str:
    """What counts: a finding of several engines once, as it is told."""
    engines = ", ".join(run.engine for run in report.runs if run.engine in report.gating)
    severities = [finding.severity for finding in counted]
    counts = ", ".join(_counted(severities.count(severity), severity) for severity in SEVERITIES)
    return f"{counts} that count ({engines})"


def _counted(number: int, severity: Severity) -> str:
    return f"{number} {severity}{'' if number == 1 else 's'}"
