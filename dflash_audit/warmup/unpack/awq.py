"""AWQ: inputs along the first axis, outputs packed along the second, interleaved.

Source: SGLang 0.5.23 `srt/hardware_backend/gpu/quantization/awq_kernels.py`,
`kernels/jit/csrc/gemm/awq_dequantize.cuh`, and `awq_to_marlin_zero_points` in
`srt/layers/quantization/marlin_utils.py` for the order.
"""

from collections.abc import Mapping
from typing import Final

import torch

from dflash_audit.tree import Module
from dflash_audit.warmup.linear import DenseLinear
from dflash_audit.warmup.unpack.fields import fields
from dflash_audit.warmup.unpack.layer import bias, linear
from dflash_audit.warmup.unpack.scaling import scaled

BITS: Final = 4
"""No kernel takes another number of bits with zero points."""

IN_WORD: Final = (0, 4, 1, 5, 2, 6, 3, 7)
"""Where in a word of eight each output is, in their order."""


def awq(module: Module, stored: Mapping[str, torch.Tensor]) -> DenseLinear:
    """`AWQMarlinLinearScheme` and `AWQLinearScheme`, which compute the same."""
    packed = stored["qweight"]

    def numbers(rows: slice) -> torch.Tensor:
        words = slice(rows.start // len(IN_WORD), rows.stop // len(IN_WORD))
        return _in_order(packed[:, words]).t().contiguous()

    inputs = linear(module).input_size_per_partition
    weight = scaled(numbers, stored["scales"].t(), inputs, zeros=_in_order(stored["qzeros"]).t())
    return DenseLinear(weight, bias(module, stored))


def _in_order(words: torch.Tensor) -> torch.Tensor:
    """[inputs or groups, words] -> their numbers of 0 to 15, [inputs or groups, outputs]."""
    numbers = fields(words, BITS).unflatten(1, (-1, len(IN_WORD)))
    return numbers[..., list(IN_WORD)].flatten(1)
