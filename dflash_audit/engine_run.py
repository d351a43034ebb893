"""What an engine does with a checkpoint, as one value whatever the engine."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple

from dflash_audit.loadplan import LoadPlan
from dflash_audit.quantization.config import QuantConfig
from dflash_audit.refusal import Refusal
from dflash_audit.tree import Tree

if TYPE_CHECKING:
    from dflash_audit.target import Target


@dataclass(frozen=True, slots=True)
class Conditions:
    """Under which conditions an engine is replayed.

    `tp` are the tensor parallel ranks, `capability` the card's compute
    capability times ten, `quantization` the server's --quantization,
    `attention_backend` its --speculative-draft-attention-backend, `target` the
    model that the draft is served with, None where none was named.
    """

    tp: int = 1
    capability: int = 90
    quantization: str | None = None
    attention_backend: str | None = None
    target: "Target | None" = None


class FlagNeeded(NamedTuple):
    """A server flag without which the engine refuses: the flag as it is written, and what needs it."""

    flag: str
    reason: str


@dataclass(slots=True)
class EngineRun:
    """The replay of one engine, filled stage by stage.

    `version` is that of an engine whose name does not tell it, an installed one.
    `skipped` is the reason why the audit does not replay it, None where it
    does. `config` is the draft's config as the engine's classes read it, None
    where it cannot be read; `tree` is None where the engine stops before or
    while it builds, `plan` where it stops before it loads. `serve` is the
    command that serves the draft beside a target, an option each. `unserved` says
    which family of drafts this is where the engine has none of it, whatever the layout, and
    `served_by` which engine of the audit has it, where one is known.
    `assumed` lists the numbers of the target that were not looked up, and from where each comes.
    `remembered` is what rules worked out of it, see `once`.
    """

    engine: str
    version: str | None = None
    model_class: str | None = None
    quantization: str | None = None
    skipped: str | None = None
    unserved: str | None = None
    served_by: str | None = None
    refusal: Refusal | None = None
    flags: tuple[FlagNeeded, ...] = ()
    serve: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    config: Mapping[str, Any] | None = None
    quant_config: QuantConfig | None = None
    tree: Tree | None = None
    plan: LoadPlan | None = None
    remembered: dict[Callable[..., Any], Any] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    # What is remembered stays here: a copy may be filled further.
    def __reduce__(self) -> tuple[type["EngineRun"], tuple[Any, ...]]:
        return EngineRun, tuple(getattr(self, each.name) for each in fields(self) if each.init)
