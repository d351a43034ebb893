"""A linear layer as its kernel computes it, its weight unpacked."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F


@dataclass(frozen=True, slots=True)
class DenseLinear:
    """`weight` is [outputs, inputs] in any float dtype, `bias` [outputs] or None.

    `round_input` is what the kernel does to its input of [..., inputs] first,
    where it quantizes activations too: the numbers that it multiplies, in the
    input's dtype.
    """

    weight: torch.Tensor
    bias: torch.Tensor | None = None
    round_input: Callable[[torch.Tensor], torch.Tensor] | None = None

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[..., inputs] -> [..., outputs], in the dtype of `x`."""
        if self.round_input is not None:
            x = self.round_input(x)
        bias = None if self.bias is None else self.bias.to(x.dtype)
        return F.linear(x, self.weight.to(x.dtype), bias)
