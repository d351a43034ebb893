"""A draft beside the target that it is served with, for the rules that compare them; no rule of its own."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dflash_audit.diagnosis.sglang_draft import Draft, read_draft, whole
from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.engines import LIVE
from dflash_audit.engines.sglang import target_classes
from dflash_audit.engines.sglang.known_architectures import KNOWN
from dflash_audit.sources.checkpoint import Checkpoint

if TYPE_CHECKING:
    from dflash_audit.target import Target

TABLES_OF: Final = "0.5.23"
"""The version of SGLang that `target_classes` was read from, and that the profiles stand for."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A draft as an engine reads it, and its target."""

    draft: Draft
    target: "Target"

    @property
    def hidden(self) -> int | None:
        """The draft's `hidden_size`, the class's default where config.json gives none."""
        return whole(self.draft.config.get("hidden_size"))

    @property
    def depth(self) -> int | None:
        return depth(self.target)

    @property
    def architecture(self) -> str | None:
        """The target's name by which the engine picks a class: the first that it knows, else the first."""
        names = self.target.architectures
        return next((name for name in names if name in KNOWN), names[0] if names else None)


def read_pair(run: EngineRun, checkpoint: Checkpoint, conditions: Conditions) -> Pair | None:
    """The pair; None without a target, for another engine, or where it cannot read the draft."""
    draft = read_draft(run, checkpoint) if conditions.target is not None else None
    return None if draft is None or conditions.target is None else Pair(draft, conditions.target)


def depth(target: "Target") -> int | None:
    """The layers that tapped ids count over, a looped model's as often as it runs them; None if not told.

    Source: as `Draft.captured`.
    """
    layers = target.num_hidden_layers
    return None if layers is None else layers * (target.number("num_loops") or 1)


def tables_hold(run: EngineRun) -> bool:
    """Whether the engine's target classes are those of `target_classes`."""
    return run.engine not in LIVE or run.version == TABLES_OF


def captures(pair: Pair) -> bool | None:
    """Whether the target's class hands over hidden states to this draft; None where nothing tells it."""
    name = pair.architecture
    if name is None or name in target_classes.BY_VERSION:
        return None
    if name in target_classes.WITHOUT_INNER:
        return False
    return name in target_classes.DFLASH or (pair.draft.dspark and name in target_classes.DSPARK)


def refuses_order(pair: Pair, run: EngineRun) -> str | None:
    """The target's class, if it refuses ids that are not in ascending order, each once."""
    name = pair.architecture
    by_dspark = pair.draft.dspark and name in target_classes.DSPARK
    return name if tables_hold(run) and name in target_classes.ORDERED and not by_dspark else None
