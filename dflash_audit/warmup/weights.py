"""A draft's weights as its forward pass asks for them: unpacked, and poisoned where nothing filled them."""

import dataclasses
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import torch

from dflash_audit.loadplan import Shard, part
from dflash_audit.tree import Linear, Module
from dflash_audit.warmup.linear import DenseLinear
from dflash_audit.warmup.memory import Memory, Stored
from dflash_audit.warmup.unpack import unpack


@dataclass(slots=True)
class Weights:
    """The parameters of the built `modules`, out of `memory`.

    `read` holds the full name of every parameter that was asked for so far.
    Nothing is kept: who asks twice reads twice.
    """

    modules: Mapping[str, Module]
    memory: Memory
    read: set[str] = field(default_factory=set)

    def parameter(self, full_name: str) -> torch.Tensor:
        """A parameter in its own shape and dtype."""
        self.read.add(full_name)
        return self.memory.parameter(full_name)

    def linear(self, module_name: str) -> DenseLinear:
        """A linear layer, unpacked: NaN in the rows for which a parameter of any dtype is not filled."""
        module = self.modules[module_name]
        stored = self.memory.of_module(module_name)
        linear = unpack(module, stored)
        self.read |= stored.read
        holes = {shard for name in _codes(module, stored) for shard in self.memory.holes(name)}
        return _poisoned(linear, module, holes) if holes else linear

    def has_linear(self, module_name: str) -> bool:
        """Whether the draft has a linear layer of that name, quantized or not."""
        module = self.modules.get(module_name)
        return module is not None and (module.linear is not None or module.module_class == "Linear")

    def unfilled(self, module: str) -> Iterator[str]:
        """What of a module was read and is not filled: its parameters, or parameter[shard] each."""
        for parameter in self._read_of(module):
            for shard in self.memory.holes(parameter):
                yield part(parameter, shard)

    def broken(self, module: str) -> Iterator[str]:
        """The parameters of a module that were read and that the checkpoint fills with NaN or infinity."""
        for name in self._read_of(module):
            numbers = self.memory.parameter(name)
            if numbers.is_floating_point() and not self.memory.holes(name) and not is_finite(numbers):
                yield name

    def _read_of(self, module: str) -> Iterator[str]:
        for parameter in self.modules[module].parameters:
            name = f"{module}.{parameter.name}"
            if name in self.read:
                yield name


def _codes(module: Module, stored: Stored) -> Iterator[str]:
    """The parameters that were read and whose dtype has no NaN to poison them with."""
    for parameter in module.parameters:
        name = f"{module.name}.{parameter.name}"
        if name in stored.read and not getattr(torch, parameter.dtype).is_floating_point:
            yield name


def _poisoned(linear: DenseLinear, module: Module, holes: set[Shard]) -> DenseLinear:
    weight = linear.weight.clone()
    for start, rows in _rows(module, holes):
        weight[start : start + rows] = math.nan
    return dataclasses.replace(linear, weight=weight)


def _rows(module: Module, holes: set[Shard]) -> Iterator[tuple[int, int]]:
    """(first row, rows) of each fused matrix that has a hole; all rows where a hole is of no one shard."""
    layer = module.linear
    assert isinstance(layer, Linear)
    if not holes <= {*module.shards}:
        yield 0, layer.output_size_per_partition
        return
    start = 0
    for shard, rows in zip(module.shards, layer.output_partition_sizes, strict=True):
        if shard in holes:
            yield start, rows
        start += rows


def is_finite(numbers: torch.Tensor) -> bool:
    """Whether a tensor of any dtype holds neither NaN nor infinity."""
    # torch has no isfinite for 8-bit floats, whose infinities and NaN float32 keeps.
    return bool(torch.isfinite(numbers.float()).all())
