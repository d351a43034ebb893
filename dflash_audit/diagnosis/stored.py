"""How a checkpoint stores each module, dense or quantized, and where a built draft differs from it."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from dflash_audit.drops import excuse, owner
from dflash_audit.dtypes import DENSE_FLOATS, TORCH
from dflash_audit.engine_run import EngineRun
from dflash_audit.loadplan import LoadPlan
from dflash_audit.sources.checkpoint import Tensor
from dflash_audit.tree import Module

WEIGHTS: Final = ("weight", "weight_packed", "qweight")
"""Names of the tensor that holds a weight's numbers; the last two are never a dense one's."""

SCALES: Final = ("weight_scale", "weight_scale_inv", "scales", "scale")
"""Names of the scales that give a quantized weight its meaning."""


class State(StrEnum):
    """How the weight of a built module is stored; MIXED where the shards of a fused one differ."""

    DENSE = "dense"
    QUANTIZED = "quantized"
    MIXED = "dense in part"


class Stored(NamedTuple):
    """One module of a checkpoint by its name there, without a leading `model.`.

    `leaves` are its tensors by their own name: `weight`, `weight_scale`, ….
    """

    name: str
    leaves: Mapping[str, Tensor]

    @property
    def weight(self) -> Tensor | None:
        return next((self.leaves[leaf] for leaf in WEIGHTS if leaf in self.leaves), None)

    @property
    def scale(self) -> Tensor | None:
        return next((self.leaves[leaf] for leaf in SCALES if leaf in self.leaves), None)

    @property
    def state(self) -> State | None:
        """How the weight is stored, None without one."""
        weight = self.weight
        if weight is None:
            return None
        dense = "weight" in self.leaves and TORCH.get(weight.dtype) in DENSE_FLOATS
        return State.DENSE if dense else State.QUANTIZED


def stored_modules(tensors: Iterable[Tensor]) -> Mapping[str, Stored]:
    """Name on disk -> module, in the order of the tensors."""
    leaves: dict[str, dict[str, Tensor]] = {}
    for tensor in tensors:
        module, _, leaf = tensor.name.removeprefix("model.").rpartition(".")
        leaves.setdefault(module, {})[leaf] = tensor
    return {name: Stored(name, own) for name, own in leaves.items()}


def stored_in(modules: Mapping[str, Module], tensors: Iterable[Tensor]) -> Mapping[str, list[Stored]]:
    """Built linear -> what is stored for it: its shards, or itself."""
    found: dict[str, list[Stored]] = {}
    for stored in stored_modules(tensors).values():
        module = owner(modules, f"{stored.name}.weight")
        if module is not None and is_linear(module) and stored.weight is not None:
            found.setdefault(module.name, []).append(stored)
    return found


def is_linear(module: Module) -> bool:
    """Whether a built module multiplies by a weight that a recipe may quantize."""
    return module.linear is not None or module.module_class in ("Linear", "ParallelLMHead")


def state_of(parts: Iterable[Stored]) -> State | None:
    """How a built module is stored, from what is stored for it; None for nothing."""
    states = {stored.state for stored in parts} - {None}
    return State.MIXED if len(states) > 1 else next(iter(states), None)


def takes_dense(module: Module) -> bool:
    """Whether a built module has a dense weight, one that is quantized after the load included."""
    return any(p.name == "weight" and p.dtype in DENSE_FLOATS for p in module.parameters)


def disagreements(modules: Mapping[str, Module], tensors: Iterable[Tensor]) -> Mapping[str, State]:
    """Built linear -> how it is stored, where it is built otherwise."""
    found = {}
    for name, parts in stored_in(modules, tensors).items():
        state = state_of(parts)
        if state is State.MIXED or (state and (state is State.DENSE) != takes_dense(modules[name])):
            found[name] = state
    return found


NOT_BUILT: Final = 1_000_000
"""More than any draft that is built can have wrong."""


def faults(run: EngineRun) -> int:
    """How many linears an engine builds otherwise than they are stored, and tensors of linears it loses."""
    if run.plan is None:
        return NOT_BUILT
    return len(disagreements(run.plan.modules, run.plan.tensors)) + sum(
        _lost(run, run.plan, tensor) for tensor in run.plan.tensors
    )


def _lost(run: EngineRun, plan: LoadPlan, tensor: Tensor) -> bool:
    """Whether a tensor of a linear goes nowhere, or loses its meaning on the way."""
    module = owner(plan.modules, tensor.name)
    if module is None or not is_linear(module):
        return False
    fills = plan.fills.get(tensor, [])
    return any(fill.lossy for fill in fills) or (not fills and excuse(run, tensor) is None)
