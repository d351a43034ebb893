"""Everything that a rule may look at, gathered once."""

from dataclasses import dataclass

from dflash_audit.checkpoint import Checkpoint
from dflash_audit.engine_run import EngineRun


@dataclass(frozen=True, slots=True)
class Facts:
    """The checkpoint and what each engine does with it; `gating` names the engines that decide."""

    checkpoint: Checkpoint
    runs: tuple[EngineRun, ...]
    gating: frozenset[str]
