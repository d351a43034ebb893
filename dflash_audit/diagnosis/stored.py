"""How a checkpoint stores each module, dense or quantized, and where a built draft differs from it."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from dflash_audit.drops import excuses
from dflash_audit.dtypes import DENSE_FLOATS, TORCH
from dflash_audit.engine_run import EngineRun
from dflash_audit.loadplan import LoadPlan
from dflash_audit.once import once
from dflash_audit.sources.checkpoint import Tensor
from dflash_audit.sources.tensors import Tensors, as_tensors
from dflash_audit.tree import Module, Modules

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

    `tensors` are all of it, in the engine's order.
    """

    name: str
    tensors: tuple[Tensor, ...]

    @property
    def leaves(self) -> Mapping[str, Tensor]:
        """Its tensors by their own name: `weight`, `weight_scale`, …."""
        return {tensor.name.rpartition(".")[2]: tensor for tensor in self.tensors}

    @property
    def weight(self) -> Tensor | None:
        return self._first(WEIGHTS)

    @property
    def scale(self) -> Tensor | None:
        return self._first(SCALES)

    def _first(self, names: Iterable[str]) -> Tensor | None:
        leaves = self.leaves
        return next((leaves[name] for name in names if name in leaves), None)

    @property
    def state(self) -> State | None:
        """How the weight is stored, None without one."""
        weight = self.weight
        if weight is None:
            return None
        dense = weight.name.rpartition(".")[2] == "weight" and TORCH.get(weight.dtype) in DENSE_FLOATS
        return State.DENSE if dense else State.QUANTIZED


def stored_modules(tensors: Iterable[Tensor]) -> Mapping[str, Stored]:
    """Name on disk -> module, in the order of the tensors."""
    return _stored(as_tensors(tensors))


@once
def _stored(tensors: Tensors) -> Mapping[str, Stored]:
    found: dict[str, list[Tensor]] = {}
    for tensor in tensors:
        found.setdefault(tensor.name.removeprefix("model.").rpartition(".")[0], []).append(tensor)
    return {name: Stored(name, tuple(own)) for name, own in found.items()}


def stored_in(modules: Modules, tensors: Iterable[Tensor]) -> Mapping[str, list[Stored]]:
    """Built linear -> what is stored for it: its shards, or itself."""
    found: dict[str, list[Stored]] = {}
    for stored in stored_modules(tensors).values():
        module = modules.owners.get(stored.name.removeprefix("model."))
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


def disagreements(modules: Modules, tensors: Iterable[Tensor]) -> Mapping[str, State]:
    """Built linear -> how it is stored, where it is built otherwise."""
    found = {}
    for name, parts in stored_in(modules, tensors).items():
        state = state_of(parts)
        if state is State.MIXED or (state and (state is State.DENSE) != takes_dense(modules[name])):
            found[name] = state
    return found


@once
def built_otherwise(run: EngineRun) -> Mapping[str, State]:
    """The disagreements of what an engine builds with what it loads; none where it loads nothing."""
    return {} if run.plan is None else disagreements(run.plan.modules, run.plan.tensors)


NOT_BUILT: Final = 1_000_000
"""More than any draft that is built can have wrong."""


@once
def faults(run: EngineRun) -> int:
    """How many linears an engine builds otherwise than they are stored, and tensors of linears it loses."""
    if run.plan is None:
        return NOT_BUILT
    linears = {name for name, module in run.plan.modules.owners.items() if is_linear(module)}
    on_disk = (stored for stored in stored_modules(run.plan.tensors).values() if stored.name in linears)
    of_linears = (tensor for stored in on_disk for tensor in stored.tensors)
    return len(built_otherwise(run)) + sum(_lost(run, run.plan, tensor) for tensor in of_linears)


def _lost(run: EngineRun, plan: LoadPlan, tensor: Tensor) -> bool:
    """Whether a tensor goes nowhere, or loses its meaning on the way."""
    lossy = any(fill.lossy for fill in plan.fills.get(tensor, ()))
    return lossy or (tensor not in plan.fills and tensor not in excuses(run))
