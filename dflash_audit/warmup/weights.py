"""A draft's weights as its forward pass asks for them: unpacked, and poisoned where nothing filled them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import torch

from dflash_audit.loadplan import Shard
from dflash_audit.tree import Linear, Module
from dflash_audit.warmup.linear import DenseLinear
from dflash_audit.warmup.memory import Memory
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

    def parameter(self, name: str) -> torch.Tensor:
        """A parameter in its own shape and dtype, by its full name."""
        self.read.add(name)
        return self.memory.parameter(name)

    def linear(self, name: str) -> DenseLinear:
        """A linear layer, by its module's name."""
        module = self.modules[name]
        stored = self.memory.of_module(name)
        linear = unpack(module, stored)
        self.read |= stored.read
        for parameter in stored.read:
            if not self.memory.parameter_is_float(parameter):
                linear = _poisoned(linear, module.linear, self.memory.holes(parameter))
        return linear

    def unfilled(self, module: str) -> Iterator[str]:
        """The parameters of a module that were read and that nothing fills, as parameter or parameter[shard]."""
        for parameter in self._read_of(module):
            for shard in self.memory.holes(parameter):
                yield parameter if shard == "all" else f"{parameter}[{shard}]"

    def nonfinite(self, module: str) -> Iterator[str]:
        """The parameters of a module that were read and that the checkpoint fills with non-finite numbers."""
        for parameter in self._read_of(module):
            numbers = self.memory.parameter(parameter)
            whole = not self.memory.holes(parameter)
            if (
                whole
                and self.memory.parameter_is_float(parameter)
                and not torch.isfinite(numbers.float()).all()
            ):
                yield parameter

    def _read_of(self, module: str) -> Iterator[str]:
        for parameter in self.modules[module].parameters:
            name = f"{module}.{parameter.name}"
            if name in self.read:
                yield name
