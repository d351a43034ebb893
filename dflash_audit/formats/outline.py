"""What a report tells a person, in order and in words, before a format lays it out.

Nothing here is made safe to print: names are as the checkpoint has them.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from dflash_audit.byte_count import byte_count
from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import SEVERITIES, Finding, Severity, Waiver
from dflash_audit.fold import enumerated
from dflash_audit.formats.told import Step, Told, sections, steps, told
from dflash_audit.how_many import how_many
from dflash_audit.report import Report
from dflash_audit.several_sizes import listed
from dflash_audit.sources.checkpoint import Checkpoint
from dflash_audit.verdict import Verdict

if TYPE_CHECKING:
    from dflash_audit.target import Target

WORDS: Final[Mapping[Verdict, str]] = {
    "pass": "serves",
    "warn": "serves, with warnings",
    "fail": "does not serve",
    "skipped": "not replayed",
}


WAIVERS: Final[tuple[Waiver, ...]] = ("known", "ignored")


@dataclass(frozen=True, slots=True)
class Row:
    """An engine's verdict; `cause` is the first finding that makes it one, None for a pass.

    `ranks` are the tensor parallel sizes at which it is that one, none where it is so at all of them.
    """

    run: EngineRun
    verdict: Verdict
    counts: bool
    cause: Finding | None
    ranks: tuple[int, ...] = ()

    @property
    def at(self) -> str:
        """Where it holds, empty for everywhere: `with --tp 4 and 8`."""
        return f"with {listed(self.ranks)}" if self.ranks else ""


@dataclass(frozen=True, slots=True)
class Alike:
    """Findings that say the same of several subjects."""

    subjects: tuple[str, ...]
    message: str
    hint: str | None


@dataclass(frozen=True, slots=True)
class OfRule:
    """What a rule found, with one severity; `waived` is why the gate lets it pass."""

    severity: Severity
    rule: str
    waived: Waiver | None
    alike: tuple[Alike, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """What holds for the same engines, none for all, the worst first; `counts` if one of them decides."""

    engines: tuple[str, ...]
    counts: bool
    rules: tuple[OfRule, ...]

    @property
    def heading(self) -> str:
        return enumerated(self.engines) or "All engines"

    @property
    def uncounted(self) -> str:
        """What is said of a section that does not count."""
        return "does not count" if len(self.engines) == 1 else "do not count"

    @property
    def severities(self) -> list[Severity]:
        """One for each finding."""
        return [of.severity for of in self.rules for alike in of.alike for _ in alike.subjects]


@dataclass(frozen=True, slots=True)
class Outline:
    """A report's parts, without what is ignored. `rows` begin with the engines that decide.

    `first` are the steps to take, `then` those to go on with if an error is left, both
    empty without an error; `serving` is the engine whose command serves the draft,
    None where there is an error. `counted` are the findings that count, those of
    several engines once.
    """

    rows: tuple[Row, ...]
    sections: tuple[Section, ...]
    first: tuple[Step, ...]
    then: tuple[Step, ...]
    serving: EngineRun | None
    counted: tuple[Told, ...]

    @property
    def not_judged(self) -> list[EngineRun]:
        """The deciding engines that are not replayed, which is no pass."""
        return [row.run for row in self.rows if row.counts and row.run.skipped is not None]


def outline(report: Report) -> Outline:
    """The parts of a report, each worked out once."""
    runs = sorted(report.runs, key=lambda run: run.engine not in report.gating)
    shown = [finding for finding in report.findings if finding.waived != "ignored"]
    findings = told(shown, [run.engine for run in runs])
    counted = [each for each in findings if each.finding.waived is None and _counts(report, each.engines)]
    first, then = _steps([each.finding for each in counted])
    # What is let pass still keeps an engine from serving the draft.
    errors = any(each.severity == "error" and report.decides(each) for each in report.findings)
    fails = errors or report.error is not None
    serving = (run for run in runs if run.engine in report.gating and run.serve and not fails)
    return Outline(
        rows=tuple(_row(report, run) for run in runs),
        sections=tuple(
            Section(engines, _counts(report, engines), tuple(_rules(of)))
            for engines, of in sections(findings).items()
        ),
        first=tuple(first),
        then=tuple(then),
        serving=next(serving, None),
        counted=tuple(counted),
    )


SHORT: Final = 80
"""A mend of no more characters is said again rather than referred to."""


def mend(about: str, hint: str, said: dict[str, str]) -> str:
    """What to do about something, or for what it stands above already; `said` is what does."""
    if len(hint) <= SHORT or hint not in said:
        said[hint] = about
        return hint
    return f"as for {said[hint]}, above" if len(said[hint]) <= SHORT else "as above"


def described(checkpoint: Checkpoint, runs: Sequence[EngineRun]) -> str:
    """What was looked at: class, quantization, tensors, files, and how much of them was read."""
    held = f"{how_many(len(checkpoint.tensors), 'tensor')} in {how_many(len(checkpoint.files), 'file')}"
    sizes = f"{byte_count(checkpoint.bytes_read)} read of {byte_count(checkpoint.bytes_total)}"
    return f"{_what(runs, checkpoint.config)}, {held} ({sizes})"


def beside(target: "Target | None") -> str:
    """The target that the draft was held against, empty without one."""
    if target is None:
        return ""
    names = ", ".join(target.architectures) or f"model type {json.dumps(target.model_type)}"
    return f"{target.id} ({names}, {target.quantization or 'dense'})"


def summary(report: Report, counted: Sequence[Told]) -> str:
    """What counts: a finding of several engines once, as it is told."""
    engines = ", ".join(run.engine for run in report.runs if run.engine in report.gating)
    waived = [f"{number} {waiver}" for waiver in WAIVERS if (number := report.waived(waiver))]
    skipped = len(report.failing_skips)
    strict = [f"{skipped} skip{'' if skipped == 1 else 's'} that --strict fails"] if skipped else []
    severities = [each.finding.severity for each in counted]
    # The verb goes by the notes, which stand before it.
    count = "counts" if severities.count("note") == 1 else "count"
    said = f"{tally(severities)} that {count} ({engines})"
    return "; ".join([said, *waived, *strict])


def tally(severities: Iterable[Severity], all_of_them: bool = True) -> str:
    """`1 error, 0 warnings, 2 notes`, without the zeros where `all_of_them` is not wanted."""
    listed = [*severities]
    numbers = {severity: listed.count(severity) for severity in SEVERITIES}
    return ", ".join(
        f"{number} {severity}{'' if number == 1 else 's'}"
        for severity, number in numbers.items()
        if number or all_of_them
    )


def _what(runs: Sequence[EngineRun], config: Mapping[str, Any]) -> str:
    """The class and the quantization as the first engine that knows them says, or what config.json names."""
    classes = [run.model_class for run in runs if run.model_class]
    if not classes:
        return f"architectures {json.dumps(config.get('architectures'))}"
    methods = [run.quantization for run in runs if run.quantization]
    return f"{classes[0]}, {methods[0] if methods else 'dense'}"


def _counts(report: Report, engines: tuple[str, ...]) -> bool:
    """Whether what holds for these engines counts: for one that gates, or for none."""
    return not engines or not report.gating.isdisjoint(engines)


def _row(report: Report, run: EngineRun) -> Row:
    verdict = report.verdict(run)
    wanted = {"fail": "error", "warn": "warning"}.get(verdict)
    causes = [finding for finding in report.of_engine(run.engine) if finding.severity == wanted]
    # What is let pass is the cause only where nothing else is.
    causes.sort(key=lambda finding: finding.waived is not None)
    cause = causes[0] if causes else None
    return Row(run, verdict, run.engine in report.gating, cause, report.held_at(run))


def _rules(findings: Sequence[Finding]) -> Iterator[OfRule]:
    """A section's findings; alike ones are told once for all of their subjects."""
    for (severity, rule, waived), of_rule in groupby(findings, key=lambda f: (f.severity, f.rule, f.waived)):
        alike = (
            Alike(tuple(finding.subject for finding in same), message, hint)
            for (message, hint), same in groupby(of_rule, key=lambda f: (f.message, f.hint))
        )
        yield OfRule(severity, rule, waived, tuple(alike))


def _steps(counted: Sequence[Finding]) -> tuple[list[Step], list[Step]]:
    if not any(finding.severity == "error" for finding in counted):
        return [], []
    return steps(finding for finding in counted if finding.severity != "note")
