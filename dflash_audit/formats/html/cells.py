"""The map of one engine: its modules, and in each a cell for every parameter, shard or lost tensor."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from dflash_audit.drops import excuses
from dflash_audit.dtypes import BITS, TORCH
from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding
from dflash_audit.formats.html.states import (
    DROPPED,
    IGNORED,
    LOADED,
    LOSSY,
    OWN,
    REFUSED,
    RESIZED,
    UNFILLED,
    UNREAD,
    State,
)
from dflash_audit.loadplan import Fill, LoadPlan, Shard
from dflash_audit.sources.checkpoint import Tensor
from dflash_audit.tree import FUSED, Module, Parameter

TORCH_BITS: Final = {torch: BITS[header] for header, torch in TORCH.items()}


@dataclass(frozen=True, slots=True)
class Cell:
    """A parameter, a shard of one, or with `is_tensor` a tensor that goes into none.

    `label` is the name behind the module's, `size` in bytes on this rank, of a
    tensor those on disk. `dtype` is torch's name, or the header's of a tensor.
    `note` says what the state does not.
    """

    name: str
    label: str
    shard: Shard | None
    state: State
    size: int
    shape: tuple[int, ...]
    dtype: str
    sources: tuple[Tensor, ...] = ()
    note: str = ""
    is_tensor: bool = False

    @property
    def target(self) -> str:
        return self.name if self.shard is None else f"{self.name}[{self.shard}]"


@dataclass(slots=True)
class Box:
    """A module and its cells; without a `module_class` one that only the checkpoint has."""

    name: str
    module_class: str | None = None
    prefix: str | None = None
    scheme: str | None = None
    cells: list[Cell] = field(default_factory=list)


def boxes(run: EngineRun, tensors: Iterable[Tensor], findings: Iterable[Finding]) -> list[Box]:
    """The modules that have cells, in the order of the tree, and then those that only the checkpoint has.

    Which parameters are resized, and not so by design, the engine's `findings` say. Of
    an engine that builds nothing they are the `tensors` as they are stored, under the
    modules that would hold them.
    """
    found: dict[str, Box] = {}
    if run.tree is None or run.plan is None:
        for tensor in tensors:
            name, shard = _stored_at(tensor.name)
            _add(found, name, _tensor_cell(tensor, shard, UNREAD, ""))
        return list(found.values())
    for module in run.tree.modules.values():
        if module.parameters:
            scheme = module.scheme.name if module.scheme else None
            # vLLM's drafts hold theirs below `model.`: one place on the map for all engines.
            shown = module.name.removeprefix("model.")
            found[module.name] = Box(shown, module.module_class, module.prefix, scheme)
    for cell, name in _parameters(run.plan, _resized(findings)):
        found[name].cells.append(cell)
    refusals = {refusal.tensor: refusal.reason for refusal in run.plan.refusals}
    for tensor in run.plan.tensors:
        if tensor not in run.plan.fills:
            _add(found, *_lost(run, run.plan, refusals, tensor))
    return list(found.values())


def _add(found: dict[str, Box], module: str, cell: Cell) -> None:
    found.setdefault(module, Box(module)).cells.append(cell)


def _resized(findings: Iterable[Finding]) -> frozenset[str]:
    return frozenset(
        name for finding in findings if finding.rule == "resized-parameter" for name in finding.subjects
    )


def _parameters(plan: LoadPlan, resized: frozenset[str]) -> Iterator[tuple[Cell, str]]:
    """Every parameter's cells, each with the name of its module."""
    fills: dict[str, list[tuple[Tensor, Fill]]] = {}
    for tensor, of_tensor in plan.fills.items():
        for fill in of_tensor:
            fills.setdefault(fill.slot.name, []).append((tensor, fill))
    missing = plan.missing()
    amounts = {amount.slot.name: amount.took for amount in plan.resized()}
    for name, slot in plan.slots.items():
        came = fills.get(name, [])
        shards: Sequence[Shard | None] = slot.shards or (None,)
        if any(fill.shard is None for _, fill in came):
            shards = (None,)
        size = math.prod(slot.parameter.shape) * TORCH_BITS.get(slot.parameter.dtype, 16) // 8
        parts = _parts(slot.module, slot.parameter, size, len(shards))
        for shard, part in zip(shards, parts, strict=True):
            of_shard = [(tensor, fill) for tensor, fill in came if fill.shard == shard]
            state, note = _fate(slot.parameter, of_shard, shard in missing.get(name, ()) or not of_shard)
            if name in resized and state is LOADED:
                state, note = RESIZED, f"holds {slot.whole:,} numbers and took {amounts[name]:,}"
            yield (
                Cell(
                    name,
                    slot.parameter.name,
                    shard,
                    state,
                    part,
                    slot.parameter.shape,
                    slot.parameter.dtype,
                    tuple(tensor for tensor, _ in of_shard),
                    note,
                ),
                slot.module.name,
            )


def _parts(module: Module, parameter: Parameter, size: int, shards: int) -> list[int]:
    """The bytes of each shard: as the layer's outputs where the parameter has a row for each, else alike."""
    outputs = module.linear.output_partition_sizes if module.linear else ()
    if len(outputs) != shards or parameter.placement.output_dim is None:
        outputs = (1,) * shards
    return [size * output // (sum(outputs) or 1) for output in outputs]


def _fate(parameter: Parameter, came: Sequence[tuple[Tensor, Fill]], empty: bool) -> tuple[State, str]:
    if empty:
        return (OWN, "") if parameter.defaulted else (UNFILLED, "")
    casts = [f"{fill.dtype} to {fill.cast_to}" for _, fill in came if fill.cast_to]
    lossy = any(fill.cast_to and fill.lossy for _, fill in came)
    note = f"cast from {', '.join(dict.fromkeys(casts))}" if casts else ""
    return (LOSSY if lossy else LOADED), note


def _lost(
    run: EngineRun, plan: LoadPlan, refusals: Mapping[str | None, str], tensor: Tensor
) -> tuple[str, Cell]:
    """A tensor that fills nothing, and the name of the module that it is for."""
    module, shard = _stored_at(tensor.name)
    owned = plan.modules.owner(tensor.name)
    reason = excuses(run).get(tensor)
    if tensor.name in refusals:
        state, note = REFUSED, refusals[tensor.name]
    elif reason is not None:
        state, note = IGNORED, reason
    else:
        state, note = DROPPED, _why_dropped(owned, module)
    if owned is not None:
        module = owned.name
    return module, _tensor_cell(tensor, shard, state, note)


def _why_dropped(owned: Module | None, module: str) -> str:
    if owned is None:
        return f"the draft has no module {module or 'for it'}"
    names = ", ".join(parameter.name for parameter in owned.parameters) or "none"
    return f"{owned.name} has no parameter for it; it has {names}"


def _tensor_cell(tensor: Tensor, shard: Shard | None, state: State, note: str) -> Cell:
    size = tensor.numel * BITS[tensor.dtype] // 8
    label = tensor.name.rpartition(".")[2]
    return Cell(tensor.name, label, shard, state, size, tensor.shape, tensor.dtype, (tensor,), note, True)


def _stored_at(name: str) -> tuple[str, Shard | None]:
    """The module that a tensor's name is for, and its shard where that is fused in every draft."""
    module = name.removeprefix("model.").rpartition(".")[0]
    head, _, last = module.rpartition(".")
    for fused, shards in FUSED.items():
        if last in shards:
            return (f"{head}.{fused}" if head else fused), shards[last]
    return module, None
