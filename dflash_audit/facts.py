"""Everything that a rule may look at, gathered once."""

from dataclasses import dataclass

from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.sources.checkpoint import Checkpoint


@dataclass(frozen=True, slots=True)
class Facts:
    """The checkpoint, and what each engine does with it under the conditions of a server.

    `gating` names the engines that decide.
    """

    checkpoint: Checkpoint
    runs: tuple[EngineRun, ...]
    gating: frozenset[str]
    conditions: Conditions
