"""The parameters of a draft as they stand after the load: filled as the plan says, poisoned elsewhere."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import SafetensorError, safe_open

from dflash_audit.dtypes import TORCH
from dflash_audit.errors import Unreadable
from dflash_audit.loadplan import Box, Copy, LoadPlan, Shard, Slot, cover, whole_of
from dflash_audit.sources.checkpoint import Tensor
from dflash_audit.tree import Parameter

POISON_BYTE: Final = 0xA5
"""Each byte of an integer that nothing fills: -1515870811 as an int32, no index of any table."""

REST: Final = "rest"
"""The shard name of what a load leaves out although a tensor for the whole parameter came."""


@dataclass(frozen=True, slots=True)
class Write:
    """One copy that the load makes into a parameter, and the tensor that it is made out of."""

    tensor: Tensor
    copy: Copy


class Memory:
    """What the draft's memory holds on `device` (torch's name), read from the weight files in `folder`.

    Files are memory-mapped, each once. Nothing that is handed out is kept: a caller
    that lets go of a parameter frees it. On a CPU a parameter may be the mapped file
    itself, so write into none.
    """

    def __init__(self, plan: LoadPlan, folder: Path, device: str) -> None:
        self._plan = plan
        self._missing = plan.missing()
        self._files = _Files(folder)
        self._device = torch.device(device)
        self._writes: dict[str, list[Write]] = {}
        for tensor, fills in plan.fills.items():
            for fill in fills:
                writes = (Write(tensor, copy) for copy in fill.copies)
                self._writes.setdefault(fill.slot.name, []).extend(writes)

    def parameter(self, name: str) -> torch.Tensor:
        """The parameter of this full name, in its own shape and dtype.

        What nothing fills is the parameter's own default where it has one that the
        engine reads, else NaN, or POISON_BYTE in integers. Casts are torch's `copy_`,
        as the engine's are.

        Raises:
            Unreadable: a weight file is gone, cut short or another than the plan was made from.
        """
        slot = self._plan.slots[name]
        mapped = self._mapped(slot)
        if mapped is not None:
            return mapped
        shape = slot.parameter.shape
        held = torch.empty(shape or (1,), dtype=_dtype(slot.parameter.dtype), device=self._device)
        if not self._covered(slot):
            _blank(held, slot.parameter)
        for write in self._writes.get(name, ()):
            self._carry_out(write, held)
        return held.reshape(shape)

    def holes(self, name: str) -> tuple[Shard, ...]:
        """What of a parameter nothing fills: ("all",), its shards, or (REST,); () for nothing.

        A parameter with a right value of its own has no holes.
        """
        if name in self._missing:
            return self._missing[name]
        slot = self._plan.slots[name]
        return () if slot.parameter.defaulted or self._covered(slot) else (REST,)

    def sources(self, name: str) -> Iterator[tuple[str, torch.Tensor]]:
        """The tensors of the checkpoint out of which a parameter is filled: (name on disk, its numbers)."""
        for tensor in dict.fromkeys(write.tensor for write in self._writes.get(name, ())):
            yield tensor.name, self._files.read(tensor)

    def of_module(self, name: str) -> "Stored":
        """The parameters of the module of this full name."""
        own = self._plan.modules[name].parameters
        return Stored(self, {p.name: f"{name}.{p.name}" if name else p.name for p in own})

    def _covered(self, slot: Slot) -> bool:
        boxes = {write.copy.into for write in self._writes.get(slot.name, ())}
        return cover(boxes, slot.parameter.shape)

    def _mapped(self, slot: Slot) -> torch.Tensor | None:
        """The file's own memory, where the parameter is one tensor's numbers as they are."""
        writes = self._writes.get(slot.name, [])
        if self._device.type != "cpu" or len(writes) != 1:
            return None
        tensor, copy = writes[0].tensor, writes[0].copy
        if copy.out_of is None or copy.into != whole_of(slot.parameter.shape):
            return None
        if TORCH[tensor.dtype] != slot.parameter.dtype or _numbers(copy.out_of) != slot.numel:
            return None
        return _part(self._files.read(tensor), copy.out_of).reshape(slot.parameter.shape)

    def _carry_out(self, write: Write, held: torch.Tensor) -> None:
        into = _part(held, write.copy.into)
        if write.copy.out_of is None:
            into.zero_()
            return
        numbers = _part(self._files.read(write.tensor), write.copy.out_of)
        # Axes of one come and go; what differs in more is broadcast.
        into.copy_(numbers.reshape(into.shape) if numbers.numel() == into.numel() else numbers)


class Stored(Mapping[str, torch.Tensor]):
    """A module's parameters by their own names, each made when it is asked for.

    `read` holds the full names of those that were.
    """

    def __init__(self, memory: Memory, names: Mapping[str, str]) -> None:
        self.read: set[str] = set()
        self._memory = memory
        self._names = names

    def __getitem__(self, name: str) -> torch.Tensor:
        full = self._names[name]
        self.read.add(full)
        return self._memory.parameter(full)

    def __contains__(self, name: object) -> bool:  # without reading it
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@dataclass(slots=True)
class _Files:
    """The weight files in `folder`, mapped when they are first read."""

    folder: Path
    opened: dict[str, Any] = field(default_factory=dict)

    def read(self, tensor: Tensor) -> torch.Tensor:
        """A tensor of a file, as the file's own memory."""
        path = self.folder / tensor.file
        try:
            if tensor.file not in self.opened:
                self.opened[tensor.file] = safe_open(path, framework="pt", device="cpu")
            found: torch.Tensor = self.opened[tensor.file].get_tensor(tensor.name)
        except (OSError, SafetensorError) as error:
            raise Unreadable("unreadable-file", str(path), f"cannot read {tensor.name}: {error}") from error
        if found.dtype != _dtype(TORCH[tensor.dtype]) or tuple(found.shape) != tensor.shape:
            raise Unreadable("unreadable-file", str(path), f"{tensor.name} is another than its header said")
        return found


def _dtype(name: str) -> torch.dtype:
    dtype: torch.dtype = getattr(torch, name)
    return dtype


def _blank(held: torch.Tensor, parameter: Parameter) -> None:
    """What memory holds before the load: the parameter's default, or poison."""
    if parameter.default is not None:
        held.fill_(parameter.default)
    elif held.is_floating_point():
        held.fill_(math.nan)
    else:
        held.view(torch.uint8).fill_(POISON_BYTE)


def _part(tensor: torch.Tensor, box: Box) -> torch.Tensor:
    if not tensor.dim():
        tensor = tensor.reshape(1)
    for axis, (start, length) in enumerate(box):
        tensor = tensor.narrow(axis, start, length)
    return tensor


def _numbers(box: Box) -> int:
    return math.prod(length for _, length in box)
