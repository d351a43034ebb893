"""Where every tensor of a checkpoint goes, and what nothing fills."""

import itertools
import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from dflash_audit.dtypes import DENSE_FLOATS
from dflash_audit.refusal import Refusal
from dflash_audit.sources.checkpoint import Tensor
from dflash_audit.sources.tensors import as_tensors
from dflash_audit.tree import Kind, Module, Modules, Parameter, Tree

Shard = str | int


def part(name: str, shard: Shard) -> str:
    """A parameter's or a module's shard, as a report writes it; the whole for "all"."""
    return name if shard == "all" else f"{name}[{shard}]"


SCALE_KINDS: Final = frozenset((Kind.CHANNEL_SCALE, Kind.GROUP_SCALE, Kind.BLOCK_SCALE, Kind.TENSOR_SCALE))

ONCE_A_SHARD: Final = (".weight_shape", ".g_idx")
"""Parameters that each shard of a fused layer writes whole, by design."""


Box = tuple[tuple[int, int], ...]
"""A part of a tensor: (start, length) along each axis, where a scalar counts as one of shape [1]."""


def whole_of(shape: tuple[int, ...]) -> Box:
    """The box that is all of a tensor."""
    return tuple([(0, size) for size in shape]) or ((0, 1),)


def cover(boxes: Iterable[Box], shape: tuple[int, ...]) -> bool:
    """Whether the boxes leave nothing free of a tensor: seen in each cell between any two edges."""
    boxes = list(boxes)
    whole = whole_of(shape)
    if whole in boxes:
        return True
    edges = []
    for axis, (_, size) in enumerate(whole):
        starts = {0} | {edge for box in boxes for edge in (box[axis][0], sum(box[axis]))}
        edges.append([edge for edge in starts if edge < size])
    return all(any(_holds(box, corner) for box in boxes) for corner in itertools.product(*edges))


def _holds(box: Box, point: tuple[int, ...]) -> bool:
    return all(start <= at < start + length for (start, length), at in zip(box, point, strict=True))


class Copy(NamedTuple):
    """One write of a weight loader: the part `out_of` a tensor goes `into` a part of the parameter.

    Both hold the same numbers in the same order, in shapes that may differ in axes of
    one, or the tensor's part is broadcast as torch does it. None stands for zeros.
    """

    into: Box
    out_of: Box | None


class Slot(NamedTuple):
    """A parameter of the tree under its full name.

    `whole` counts its numbers over all ranks, of which a tensor brings each once.
    """

    name: str
    module: Module
    parameter: Parameter
    whole: int

    @property
    def shards(self) -> tuple[Shard, ...]:
        """The shard ids of a fused layer's parameter, none for another."""
        return self.module.shards

    @property
    def numel(self) -> int:
        return math.prod(self.parameter.shape)


class Fill(NamedTuple):
    """One tensor in one parameter, or in its `shard`; `dtype` is the tensor's, in torch's name.

    `copies` are made one after another, each over what is there.
    """

    slot: Slot
    shard: Shard | None
    dtype: str
    copies: tuple[Copy, ...]

    @property
    def target(self) -> str:
        return self.slot.name if self.shard is None else part(self.slot.name, self.shard)

    @property
    def cast_to(self) -> str | None:
        """The parameter's dtype where it is another than the tensor's."""
        to = self.slot.parameter.dtype
        return to if to != self.dtype else None

    @property
    def lossy(self) -> bool:
        """Whether the cast loses the meaning: quantized numbers into a dense parameter or the reverse."""
        parameter = self.slot.parameter
        scale = parameter.placement.kind in SCALE_KINDS or "scale" in parameter.name
        dense = (parameter.dtype in DENSE_FLOATS, self.dtype in DENSE_FLOATS)
        return not scale and dense[0] != dense[1]


class Resized(NamedTuple):
    """A parameter that took in another amount of numbers than it holds over all ranks."""

    slot: Slot
    took: int


@dataclass(slots=True)
class LoadPlan:
    """The replayed load of a checkpoint into a tree.

    The engine stops at the first of `refusals`; what follows it is what the
    load would do if it went on. `fills` stand in the order of the load.
    """

    slots: Mapping[str, Slot]
    modules: Modules
    tensors: tuple[Tensor, ...]
    fills: dict[Tensor, list[Fill]] = field(default_factory=dict)
    refusals: list[Refusal] = field(default_factory=list)
    _filled: dict[str, set[Shard | None]] = field(default_factory=dict)

    def fill(self, tensor: Tensor, fill: Fill) -> None:
        self.fills.setdefault(tensor, []).append(fill)
        self._filled.setdefault(fill.slot.name, set()).add(fill.shard)

    def refuse(self, reason: str, tensor: str | None = None) -> None:
        # A whole foreign tree may be refused for one reason, which is kept once.
        self.refusals.append(Refusal("load", sys.intern(reason), tensor))

    def filled(self) -> Mapping[str, set[Shard | None]]:
        """Full parameter name -> the shards that came; None stands for the whole."""
        return self._filled

    def missing(self, unread: bool = False) -> Mapping[str, tuple[Shard, ...]]:
        """Full parameter name -> the shards that nothing fills, ("all",) where none came.

        Parameters that have a right value of their own are left out, and but for
        `unread` those that are taken away where nothing fills them.
        """
        nothing: set[Shard | None] = set()
        found: dict[str, tuple[Shard, ...]] = {}
        for slot in self.slots.values():
            came = self._filled.get(slot.name, nothing)
            if None in came or slot.parameter.defaulted or (slot.parameter.unread and not unread):
                continue
            absent = tuple(shard for shard in slot.shards if shard not in came)
            if not came:
                found[slot.name] = ("all",)
            elif absent:
                found[slot.name] = absent
        return found

    def half_filled(self) -> list[Slot]:
        """Parameters of which a part stays as it was, although each of their shards came.

        Those that have a right value of their own are left out, and those for which
        nothing tells what the loads wrote (those of an engine that runs itself).
        """
        missing = self.missing()
        boxes: dict[str, set[Box]] = {}
        for fill in self._all_fills():
            boxes.setdefault(fill.slot.name, set()).update(copy.into for copy in fill.copies)
        return [
            slot
            for name, slot in self.slots.items()
            if name not in missing and not slot.parameter.defaulted
            if boxes.get(name) and not cover(boxes[name], slot.parameter.shape)
        ]

    def resized(self) -> list[Resized]:
        """Parameters that took in another amount than they hold, without an objection."""
        amounts: dict[str, int] = {}
        for tensor, fills in self.fills.items():
            for fill in fills:
                amounts[fill.slot.name] = amounts.get(fill.slot.name, 0) + tensor.numel
        return [
            Resized(slot, amounts[name])
            for name, slot in self.slots.items()
            if amounts.get(name, slot.whole) != slot.whole and not name.endswith(ONCE_A_SHARD)
        ]

    def _all_fills(self) -> Iterator[Fill]:
        for fills in self.fills.values():
            yield from fills


def empty_plan(tree: Tree, whole: Tree, tensors: tuple[Tensor, ...]) -> LoadPlan:
    """A plan before anything is loaded; `whole` is the tree that a single rank would build."""
    numbers = {name: math.prod(parameter.shape) for name, _, parameter in whole.parameters()}
    slots = {
        name: Slot(name, module, parameter, numbers[name]) for name, module, parameter in tree.parameters()
    }
    return LoadPlan(slots, tree.modules, as_tensors(tensors))
