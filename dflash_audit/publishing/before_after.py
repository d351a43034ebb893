"""What became better or worse from one audit to another, of verdicts and of findings; pure."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from dflash_audit.finding import SEVERITIES, Finding, Severity
from dflash_audit.fold import title
from dflash_audit.gate.subjects import prints, subjects
from dflash_audit.report import Report
from dflash_audit.verdict import Verdict

Change = Literal["better", "worse", "same", "changed", "new"]
"""Of a verdict: `changed` to or from one that was not given, `new` where there is none before.
To lose one that served is worse."""

Kind = Literal["new", "worse", "gone", "better", "stayed"]
"""Of a finding: `worse` and `better` by its severity."""

RANK: Final[dict[Verdict, int]] = {"fail": 0, "warn": 1, "pass": 2}


@dataclass(frozen=True, slots=True)
class EngineChange:
    """An engine's verdict before and after; None where nothing could be audited, or was not."""

    engine: str
    gating: bool
    before: Verdict | None
    after: Verdict | None
    change: Change


@dataclass(frozen=True, slots=True)
class Comparison:
    """Findings by what became of them, each as the later report has it, of what is gone as the earlier one.

    A finding of which a part alone is new is parted. What the gate ignores is left out.
    """

    engines: tuple[EngineChange, ...]
    new: tuple[Finding, ...]
    worse: tuple[Finding, ...]
    gone: tuple[Finding, ...]
    better: tuple[Finding, ...]
    stayed: tuple[Finding, ...]

    @property
    def kinds(self) -> tuple[tuple[Kind, tuple[Finding, ...]], ...]:
        """All of them, what to look at first."""
        return (
            ("new", self.new),
            ("worse", self.worse),
            ("gone", self.gone),
            ("better", self.better),
            ("stayed", self.stayed),
        )


def compare(before: Report, after: Report) -> Comparison:
    """Two audits of one source, held against each other by the findings' fingerprints.

    A report of what could not be read has neither verdicts nor findings; after it nothing is gone.
    """
    earlier, later = _severities(before), _severities(after)
    now = [*_parted(after, earlier, _became)]
    if after.checkpoint is not None:
        now += _parted(before, later, _went)

    def of(kind: Kind) -> tuple[Finding, ...]:
        return tuple(finding for its, finding in now if its == kind)

    engines = tuple(_engines(before, after))
    return Comparison(engines, of("new"), of("worse"), of("gone"), of("better"), of("stayed"))


def _severities(report: Report) -> dict[str, Severity]:
    """Fingerprint -> severity of every subject of every finding that is not ignored."""
    marked = zip(report.findings, prints(report), strict=True)
    return {
        mark: finding.severity for finding, marks in marked if finding.waived != "ignored" for mark in marks
    }


def _parted(
    report: Report,
    others: Mapping[str, Severity],
    told: Callable[[Severity, Severity | None], Kind | None],
) -> Iterator[tuple[Kind, Finding]]:
    """The findings by what `told` makes of each subject's severity and of the one it has among `others`."""
    for finding, marks in zip(report.findings, prints(report), strict=True):
        if finding.waived == "ignored":
            continue
        names: dict[Kind, list[str]] = {}
        for name, mark in zip(subjects(finding), marks, strict=True):
            kind = told(finding.severity, others.get(mark))
            if kind is not None:
                names.setdefault(kind, []).append(name)
        for kind, part in names.items():
            whole = len(part) == len(subjects(finding))
            yield kind, finding if whole else replace(finding, subject=title(part), subjects=tuple(part))


def _became(now: Severity, before: Severity | None) -> Kind:
    if before is None:
        return "new"
    if now == before:
        return "stayed"
    return "worse" if SEVERITIES.index(now) < SEVERITIES.index(before) else "better"


def _went(before: Severity, now: Severity | None) -> Kind | None:
    return "gone" if now is None else None


def _engines(before: Report, after: Report) -> Iterator[EngineChange]:
    """In the order of the later report; an engine that only the earlier one has comes last."""
    then, now = ({run.engine: report.verdict(run) for run in report.runs} for report in (before, after))
    for engine in dict.fromkeys((*now, *then)):
        old, new = then.get(engine), now.get(engine)
        yield EngineChange(engine, engine in (after.gating or before.gating), old, new, _change(old, new))


def _change(before: Verdict | None, after: Verdict | None) -> Change:
    if before is None:
        return "new"
    if before == after:
        return "same"
    if before not in RANK:
        return "changed"
    if after is None or after not in RANK:
        return "changed" if before == "fail" else "worse"
    return "better" if RANK[after] > RANK[before] else "worse"
