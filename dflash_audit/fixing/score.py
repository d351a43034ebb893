"""How far a checkpoint is from being served, as numbers to compare."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, get_args

from dflash_audit.facts import Facts
from dflash_audit.judge import engine_findings
from dflash_audit.refusal import Stage

STAGES: Final[tuple[Stage, ...]] = get_args(Stage)
NOT_REPLAYED: Final = len(STAGES) + 1
"""Farther than any refusal: a repair must not end where the audit does not look."""


@dataclass(frozen=True, slots=True, order=True)
class Score:
    """`stages` between the engines and a load, `errors` and `warnings` of the rules on what they do."""

    stages: int
    errors: int
    warnings: int

    @property
    def serves(self) -> bool:
        return self.stages == self.errors == 0


def score(facts: Facts, engines: Collection[str]) -> Score:
    """The sum over some of the engines."""
    stages = errors = warnings = 0
    for run in facts.runs:
        if run.engine not in engines:
            continue
        if run.skipped is not None:
            stages += NOT_REPLAYED
        elif run.refusal is not None:
            stages += len(STAGES) - STAGES.index(run.refusal.stage)
        for finding in engine_findings(run, facts):
            errors += finding.count if finding.severity == "error" else 0
            warnings += finding.severity == "warning"
    return Score(stages, errors, warnings)


def refusals(facts: Facts, engines: Collection[str]) -> tuple[str, ...]:
    """What the engines say where they stop."""
    return tuple(
        f"{run.refusal.stage}: {run.refusal.reason}" if run.refusal else ""
        for run in facts.runs
        if run.engine in engines
    )
