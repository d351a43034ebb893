"""The report for a person in a terminal: the verdicts, what was found, what to do next."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, Final

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dflash_audit.byte_count import byte_count
from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import SEVERITIES, Finding, Severity
from dflash_audit.formats import tree_text
from dflash_audit.formats.clean import clean
from dflash_audit.formats.console import Part, written
from dflash_audit.formats.screen import Screen
from dflash_audit.report import Report
from dflash_audit.verdict import Verdict

CONSEQUENCES: Final = frozenset(
    (
        "unknown-class",
        "refused-build",
        "refused-load",
        "dropped-tensor",
        "unfilled-parameter",
        "resized-parameter",
        "lossy-cast",
    )
)
"""Rules that tell what happens; of what stands beside them, another rule tells the cause."""

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
    for engines, findings in _sections(report).items():
        yield from _section(report, engines, findings)
    if screen.verbose:
        for run in _gating_first(report):
            if run.engine in report.gating:
                yield Text()
                yield from tree_text.lines(run)
    yield Text()
    yield from _next(report)
    yield from _not_judged(report)
    yield Text(_summary(report), style="dim")


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
        table.add_row(Text("  " + run.engine), Text(words, style=style), Text(_why(report, run) + aside))
    return table


def _why(report: Report, run: EngineRun) -> str:
    if run.skipped is not None:
        return clean(run.skipped)
    wanted = {"fail": "error", "warn": "warning"}.get(report.verdict(run))
    found = [finding for finding in report.of_engine(run.engine) if finding.severity == wanted]
    return f"{found[0].rule}: {clean(found[0].subject)}" if found else ""


def _gating_first(report: Report) -> list[EngineRun]:
    return sorted(report.runs, key=lambda run: run.engine not in report.gating)


def _sections(report: Report) -> Mapping[tuple[str, ...], list[Finding]]:
    """The findings by the engines that they hold for; what differs only by the engine's name is one."""
    told: dict[Finding, list[str]] = {}
    firsts: dict[Finding, Finding] = {}
    for run in _gating_first(report):
        for finding in report.of_engine(run.engine):
            alike = _without_engine(finding)
            firsts.setdefault(alike, finding)
            told.setdefault(alike, []).append(run.engine)
    sections: dict[tuple[str, ...], list[Finding]] = {}
    for alike, engines in told.items():
        sections.setdefault(tuple(engines), []).append(firsts[alike])
    sections[()] = [*report.of_engine(None)]
    return sections


def _without_engine(finding: Finding) -> Finding:
    name = finding.engine or ""
    hint = finding.hint and finding.hint.replace(name, "")
    return replace(finding, engine=None, message=finding.message.replace(name, ""), hint=hint)


def _section(report: Report, engines: tuple[str, ...], findings: list[Finding]) -> Iterator[RenderableType]:
    """The findings of a section, the worst first; alike ones are told once for all of their subjects."""
    if not findings:
        return
    gates = not engines or not report.gating.isdisjoint(engines)
    heading = " and ".join(engines) or "All engines"
    yield Text(f"\n{heading}{'' if gates else ' (does not count)'}", style="bold")
    worst_first = sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))
    for (severity, rule), of_rule in groupby(worst_first, key=lambda f: (f.severity, f.rule)):
        yield Text.assemble("  ", (severity, COLORS[severity]), " ", (rule, "bold"))
        for (message, hint), alike in groupby(of_rule, key=lambda f: (f.message, f.hint)):
            for finding in alike:
                yield _indented(4, Text(clean(finding.subject), style="cyan"))
            yield _indented(6, Text(clean(message)))
            if hint:
                yield _indented(6, Text.assemble(("fix: ", "green"), clean(hint)))


def _indented(columns: int, text: Text) -> Padding:
    return Padding(text, (0, 0, 0, columns), expand=False)


def _next(report: Report) -> Iterator[Part]:
    """What to do: mend the errors that count, or serve the draft."""
    counted = [finding for finding in report.findings if report.counts_in_summary(finding)]
    if any(finding.severity == "error" for finding in counted):
        yield from _steps([finding for finding in counted if finding.severity != "note"])
        return
    serving = next((run for run in report.runs if run.engine in report.gating and run.serve), None)
    if serving is not None:
        yield Text(f"Serve it on {serving.engine} with", style="bold")
        yield " \\\n".join(f"    {clean(option)}" for option in serving.serve) + "\n", ""


def _steps(findings: Iterable[Finding]) -> Iterator[RenderableType]:
    """The mends, an error's before a warning's; where a cause is named, those of its consequences last."""
    causes_first = sorted(findings, key=lambda f: (f.rule in CONSEQUENCES, SEVERITIES.index(f.severity)))
    firsts: dict[str, Finding] = {}
    for finding in causes_first:
        if finding.hint:
            firsts.setdefault(finding.hint, finding)
    heading = "Next"
    for _, steps in groupby(firsts.items(), key=lambda step: step[1].rule in CONSEQUENCES):
        yield Text(heading, style="bold")
        yield _numbered([f"{clean(finding.subject)}: {clean(hint)}" for hint, finding in steps])
        yield Text()
        heading = "Then, if an error is left"


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


def _summary(report: Report) -> str:
    engines = ", ".join(run.engine for run in report.runs if run.engine in report.gating)
    counts = ", ".join(_counted(report.counts[severity], severity) for severity in SEVERITIES)
    return f"{counts} that count ({engines}); exit code {report.exit_code}"


def _counted(number: int, severity: Severity) -> str:
    return f"{number} {severity}{'' if number == 1 else 's'}"
