"""Everything that a rule may look at, gathered once."""

from typing import TYPE_CHECKING, NamedTuple

from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.sources.checkpoint import Checkpoint

if TYPE_CHECKING:
    from dflash_audit.warmup.result import WarmUp


class ListChange(NamedTuple):
    """A change of the ignore list that was replayed: what to do, and the engines that then have no error."""

    advice: str
    serve: frozenset[str]


class Facts(NamedTuple):
    """The checkpoint, and what each engine does with it under the conditions of a server.

    `gating` names the engines that decide; `warmups` are theirs, none where none was asked for. `change` is
    the change of the ignore list that mends the most, None where none was found.
    """

    checkpoint: Checkpoint
    runs: tuple[EngineRun, ...]
    gating: frozenset[str]
    conditions: Conditions
    warmups: tuple["WarmUp", ...] = ()
    change: ListChange | None = None
