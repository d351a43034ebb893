"""Findings as a person is told them: what several engines have in common, once."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from dflash_audit.engines import SUPERSEDED
from dflash_audit.finding import SEVERITIES, Finding
from dflash_audit.fold import pattern

CONSEQUENCES: Final = frozenset(
    (
        "unknown-class",
        "refused-build",
        "refused-load",
        "dropped-tensor",
        "unfilled-parameter",
        "resized-parameter",
        "lossy-cast",
        "warmup-died",
    )
)
"""Rules that tell what happens; of what stands beside them, another rule tells the cause."""

SHOWN_BY: Final[Mapping[str, str]] = {
    "warmup-unfilled": "unfilled-parameter",
    "warmup-hidden-drift": "warmup-weight-drift",
}
"""A rule that shows what comes of another's findings -> that one, whose mends are the same."""

MOST_NAMED: Final = 3
"""Most subjects that stand before a step."""


@dataclass(frozen=True, slots=True)
class Told:
    """A finding and the engines that it holds for, none where it is about the checkpoint as such.

    Of several engines its words say "the engine", for each of them.
    """

    finding: Finding
    engines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """A mend, for the findings of `subjects`."""

    subjects: tuple[str, ...]
    mend: str

    @property
    def named(self) -> tuple[str, ...]:
        """The subjects that stand before it."""
        return self.subjects[:MOST_NAMED]

    @property
    def more(self) -> str:
        """How many others it is for, where there are any."""
        left = len(self.subjects) - MOST_NAMED
        return f" and {left} more" if left > 0 else ""

    def __str__(self) -> str:
        return f"{', '.join(self.named)}{self.more}: {self.mend}"


def told(findings: Sequence[Finding], engines: Sequence[str]) -> list[Told]:
    """The findings in the order of their first engine, those of none last; `engines` are all, in order.

    Findings that differ by nothing but the name of their own engine are one; what a superseded engine
    shares with a later one has the later one's mend.
    """
    later = {
        _but_its_mend(alike): alike
        for finding in findings
        if finding.engine is not None and finding.engine not in SUPERSEDED
        for alike in [_of_any_engine(finding, engines)]
    }
    firsts: dict[Finding, Finding] = {}
    holds_for: dict[Finding, list[str]] = {}
    for engine in (*engines, None):
        for finding in findings:
            if finding.engine == engine:
                alike = _of_any_engine(finding, engines)
                if engine in SUPERSEDED:
                    alike = later.get(_but_its_mend(alike), alike)
                firsts.setdefault(alike, finding)
                holds_for.setdefault(alike, []).extend([engine] if engine else [])
    return [
        Told(alike if len(names) > 1 else firsts[alike], tuple(names)) for alike, names in holds_for.items()
    ]


def _but_its_mend(finding: Finding) -> Finding:
    return replace(finding, hint=None)


def _of_any_engine(finding: Finding, engines: Iterable[str]) -> Finding:
    """The finding in words that name no engine; what names another engine stays as it is."""

    def worded(text: str) -> str:
        if finding.engine is None or any(_named(engine).search(text) for engine in others):
            return text
        return re.sub(r"(^|\. )the engine", r"\1The engine", _named(finding.engine).sub("the engine", text))

    others = [engine for engine in engines if engine != finding.engine]
    hint = finding.hint and worded(finding.hint)
    return replace(finding, engine=None, message=worded(finding.message), hint=hint)


def _named(engine: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w./-]){re.escape(engine)}(?![\w/-])")


def steps(findings: Iterable[Finding]) -> tuple[list[Step], list[Step]]:
    """The mends, and those to go on with if they were not enough; an error's before a warning's.

    Where a cause is named, the mends of its consequences are the second list. A mend is
    said once, and of the consequences that one module suffers only the first one's.
    """
    findings = [*findings]
    rules = {finding.rule for finding in findings}
    causes: dict[str, list[str]] = {}
    rest: dict[str, list[str]] = {}
    seen: set[str] = set()
    worst_first = sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))
    for finding in sorted(worst_first, key=lambda finding: finding.rule in CONSEQUENCES):
        if not finding.hint or SHOWN_BY.get(finding.rule) in rules:
            continue
        if finding.rule not in CONSEQUENCES:
            _add(causes, finding)
        elif finding.hint not in causes:
            modules = _modules(finding)
            if finding.hint in rest or not modules <= seen:
                _add(rest, finding)
            seen |= modules
    listed = [[Step(tuple(names), mend) for mend, names in group.items()] for group in (causes, rest)]
    return (listed[0], listed[1]) if listed[0] else (listed[1], [])


def _add(steps: dict[str, list[str]], finding: Finding) -> None:
    assert finding.hint is not None
    names = steps.setdefault(finding.hint, [])
    if finding.subject not in names:
        names.append(finding.subject)


def _modules(finding: Finding) -> set[str]:
    """What a finding is about, without layers and without what stands behind the last dot."""
    return {pattern(name).rpartition(".")[0] or name for name in finding.subjects or (finding.subject,)}


def sections(findings: Iterable[Told]) -> Mapping[tuple[str, ...], list[Finding]]:
    """The findings by the engines that they hold for, the worst first; what holds for all before the rest."""
    found: dict[tuple[str, ...], list[Finding]] = {}
    for each in findings:
        found.setdefault(each.engines, []).append(each.finding)
    return {
        engines: sorted(of, key=lambda finding: SEVERITIES.index(finding.severity))
        # What is wrong with the checkpoint itself is why an engine cannot load it.
        for engines, of in sorted(found.items(), key=lambda section: bool(section[0]))
    }
