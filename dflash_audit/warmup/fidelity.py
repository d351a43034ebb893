"""How far the unpacked weights of a draft are from those of the draft that it was made from."""

import math
from collections.abc import Iterator
from typing import Protocol

import torch

from dflash_audit.loadplan import Shard
from dflash_audit.tree import FUSED, Module
from dflash_audit.warmup.linear import DenseLinear
from dflash_audit.warmup.result import Drift


class Linears(Protocol):
    """Where linear layers come from, by their module's name."""

    def linear(self, name: str) -> DenseLinear: ...


def drift(module: Module, own: Linears, other: Linears) -> Iterator[Drift]:
    """Compare one linear of both drafts, each of its fused matrices for itself.

    A matrix that is all zeros in `other` is passed over.
    """
    ours, theirs = own.linear(module.name).weight.float(), other.linear(module.name).weight.float()
    bits = _bits(module)
    for name, start, rows in _matrices(module):
        found = _drift(name, bits, ours[start : start + rows], theirs[start : start + rows])
        if found is not None:
            yield found


def _drift(name: str, bits: float, ours: torch.Tensor, theirs: torch.Tensor) -> Drift | None:
    """Of two matrices [outputs, inputs]; rows without any weight say nothing of a scale."""
    power = theirs.square().sum(-1)
    alive = power > 0
    if not bool(alive.any()):
        return None
    ours, theirs, power = ours[alive], theirs[alive], power[alive]
    difference = ours - theirs
    error = math.sqrt(float(difference.square().sum() / power.sum()))
    gain = (ours * theirs).sum(-1) / power
    shift = difference.mean(-1) / (power / theirs.shape[-1]).sqrt()
    return Drift(
        matrix=name,
        bits=bits,
        error=error,
        gain=float(gain[(gain - 1).abs().argmax()]),
        shift=float(shift.abs().max()),
    )


def _matrices(module: Module) -> Iterator[tuple[str, int, int]]:
    """(name, first row, rows) of each matrix fused in a linear of one rank."""
    linear = module.linear
    assert linear is not None
    shards: tuple[Shard, ...] = tuple(FUSED.get(module.name.rpartition(".")[2], {}).values())
    start = 0
    for index, rows in enumerate(linear.output_partition_sizes):
        name = f"{module.name}[{shards[index]}]" if len(linear.output_partition_sizes) > 1 else module.name
        yield name, start, rows
        start += rows


WEIGHTS = ("weight_packed", "qweight", "weight")


def _bits(module: Module) -> float:
    """Bits of a stored weight of a linear: those of its numbers as they lie in memory."""
    linear = module.linear
    assert linear is not None
    stored = {parameter.name: parameter for parameter in module.parameters}
    parameter = next(stored[name] for name in WEIGHTS if name in stored)
    size = torch.empty(0, dtype=getattr(torch, parameter.dtype)).element_size()
    numbers = linear.input_size_per_partition * linear.output_size_per_partition
    return 8 * size * math.prod(parameter.shape) / numbers


def cosine(ours: torch.Tensor, theirs: torch.Tensor) -> tuple[float, float]:
    """Mean and least cosine of the last axis' vectors of two tensors of one shape."""
    found = torch.nn.functional.cosine_similarity(ours.float(), theirs.float(), dim=-1)
    return float(found.mean()), float(found.min())


def agreement(ours: torch.Tensor, theirs: torch.Tensor) -> tuple[float, float]:
    """Of candidate ids [positions, k], best first: how often the first agree, and the share of common ids."""
    first = (ours[:, 0] == theirs[:, 0]).float().mean()
    common = (ours.unsqueeze(-1) == theirs.unsqueeze(-2)).any(-1).float().mean()
    return float(first), float(common)
