"""The report of an audit: what was looked at, what each engine does, what was found."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.errors import Unreadable
from dflash_audit.finding import SEVERITIES, FailOn, Finding, Severity, Skip, Waiver
from dflash_audit.several_sizes import AtSize
from dflash_audit.sources.checkpoint import Checkpoint, Origin
from dflash_audit.verdict import Verdict, verdict

if TYPE_CHECKING:
    from dflash_audit.warmup.result import WarmUp

PASSED: Final = 0
FOUND: Final = 1
UNREADABLE: Final = 3
INTERRUPTED: Final = 130
"""The exit code after Ctrl-C, as a shell has it; no report's."""


@dataclass(frozen=True, slots=True)
class Report:
    """One audit.

    `runs` stand in the order of the registry, `gating` names those that
    decide, `conditions` are those that all were replayed under. `warmups` are of
    the gating engines, None where none was asked for. `sizes` are the audits of each
    tensor parallel size, the first of which `runs` are of. With an `error` and no
    `checkpoint` nothing was audited; with both, the warm-up could not be run or a
    report not be written. `failing_skips` are the `skips` that fail the audit, none
    unless that was asked for.
    """

    origin: Origin
    checkpoint: Checkpoint | None = None
    runs: tuple[EngineRun, ...] = ()
    gating: frozenset[str] = frozenset()
    findings: tuple[Finding, ...] = ()
    skips: tuple[Skip, ...] = ()
    conditions: Conditions = field(default_factory=Conditions)
    sizes: tuple[AtSize, ...] = ()
    warmups: tuple["WarmUp", ...] | None = None
    error: Unreadable | None = None
    fail_on: FailOn = "error"
    failing_skips: tuple[Skip, ...] = ()
    counts: dict[Severity, int] = field(init=False)

    def __post_init__(self) -> None:
        counted = [finding.severity for finding in self.findings if self.counts_in_summary(finding)]
        object.__setattr__(self, "counts", {s: counted.count(s) for s in SEVERITIES})

    def counts_in_summary(self, finding: Finding) -> bool:
        """Whether a finding moves the summary: one that decides, and that the gate does not let pass."""
        return finding.waived is None and self.decides(finding)

    def decides(self, finding: Finding) -> bool:
        """Whether a finding is of a gating engine, or of none."""
        return finding.engine is None or finding.engine in self.gating

    @property
    def strict_reasons(self) -> list[str]:
        """What the failing skips say, each once: the name of the engine, and why it was not looked at."""
        return [*dict.fromkeys(skip.reason for skip in self.failing_skips)]

    def waived(self, waiver: Waiver) -> int:
        """How many findings that decide the gate lets pass for this reason."""
        return len([each for each in self.findings if each.waived == waiver and self.decides(each)])

    def verdict(self, run: EngineRun) -> Verdict:
        """An engine's over all sizes."""
        return verdict(run, self.findings)

    def verdicts(self, run: EngineRun) -> dict[int, Verdict]:
        """An engine's at each tensor parallel size that was asked for."""
        at_each = {size.tp: size.verdict(run.engine) for size in self.sizes}
        return at_each or {self.conditions.tp: self.verdict(run)}

    def held_at(self, run: EngineRun) -> tuple[int, ...]:
        """The sizes at which an engine's verdict is its worst, none where it is the same at all of them."""
        at_each, worst = self.verdicts(run), self.verdict(run)
        held = tuple(tp for tp, each in at_each.items() if each == worst)
        return held if len(held) < len(at_each) else ()

    def of_engine(self, engine: str | None) -> Iterable[Finding]:
        return (finding for finding in self.findings if finding.engine == engine)

    @property
    def exit_code(self) -> int:
        """3 for an error; 1 for a finding of at least `fail_on` that counts or a skip that fails, else 0."""
        if self.error is not None:
            return UNREADABLE
        found = any(self.counts[severity] for severity in self.failing)
        return FOUND if found or self.failing_skips else PASSED

    @property
    def failing(self) -> tuple[Severity, ...]:
        """The severities of which one finding that counts fails the audit."""
        return () if self.fail_on == "never" else SEVERITIES[: SEVERITIES.index(self.fail_on) + 1]
