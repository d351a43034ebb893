"""A draft's weights as if they were rounded at random, to see how far its forward pass carries that."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, NamedTuple

import torch

from dflash_audit.warmup.linear import DenseLinear
from dflash_audit.warmup.reference.weights import Weights
from dflash_audit.warmup.result import Drift, Numbers


class Rounding(NamedTuple):
    """Relative errors of honest rounding: of usual weights, and the most, of outlier-heavy ones."""

    usual: float
    most: float


WEIGHTS: Final[Mapping[tuple[Numbers, int], Rounding]] = {
    ("float", 16): Rounding(0.003, 0.01),
    ("int", 8): Rounding(0.008, 0.04),
    ("float", 8): Rounding(0.027, 0.03),
    ("int", 4): Rounding(0.11, 0.35),
    ("float", 4): Rounding(0.10, 0.11),
}
"""Measured by `scripts/measure_fidelity.py`."""

INPUTS: Final[Mapping[tuple[Numbers, int], float]] = {
    ("int", 8): 0.02,
    ("float", 8): 0.03,
    ("float", 4): 0.10,
}
"""The relative error where a kernel rounds its inputs too, by the weights that it multiplies them with."""


def level(drifts: Sequence[Drift], rescaled: bool, rounds_input: bool) -> float:
    """The relative error of a linear's outputs that rounding explains.

    It is the weights' own error as far as that is honest; the usual one where the
    weights differ by design.
    """
    if not drifts:
        return 0.0
    form = drifts[0].numbers, drifts[0].bits
    limits = WEIGHTS[form]
    errors = [limits.usual if rescaled and form[1] < 16 else min(d.error, limits.most) for d in drifts]
    own = sum(error**2 for error in errors) / len(errors)
    return math.sqrt(own + (INPUTS[form] ** 2 if rounds_input else 0.0))


@dataclass(frozen=True, slots=True)
class Roughened:
    """Weights of which each linear's inputs get noise of the relative size that `levels` has for it.

    That does to its outputs what errors of that size in its weights do, without as many
    random numbers as weights. They are drawn on the CPU, the same on every device.
    """

    weights: Weights
    levels: Mapping[str, float]
    generator: torch.Generator

    def parameter(self, full_name: str) -> torch.Tensor:
        return self.weights.parameter(full_name)

    def linear(self, module_name: str) -> DenseLinear:
        linear = self.weights.linear(module_name)
        level = self.levels.get(module_name, 0.0)
        return replace(linear, round_input=partial(_noisy, level=level, generator=self.generator))


def _noisy(x: torch.Tensor, level: float, generator: torch.Generator) -> torch.Tensor:
    values = x.float()
    size = values.square().mean(-1, keepdim=True).sqrt()
    noise = torch.randn(x.shape, generator=generator).to(x.device)
    return (values + level * size * noise).to(x.dtype)
