"""Weights with a scale for each logical matrix, made to share the greatest of them.

Source: SGLang 0.5.23 `requantize_with_max_scale` in
`srt/layers/quantization/utils.py`, on CUDA.
"""

import torch

from dflash_audit.tree import Module
from dflash_audit.warmup.unpack.layer import by_row, linear
from dflash_audit.warmup.unpack.rounding import to_fp8
from dflash_audit.warmup.unpack.scaling import scaled


def requantized(weight: torch.Tensor, scales: torch.Tensor, module: Module) -> torch.Tensor:
    """[outputs, inputs] and [matrices] -> what the kernel multiplies, in bfloat16.

    The engine goes through float16, scales too, and rounds to FP8 again. The
    greatest of scales with a NaN among them is NaN, so it spreads to every row.
    """
    shared = scales.float().max()
    own = by_row(scales.half(), module)

    def numbers(rows: slice) -> torch.Tensor:
        dense = weight[rows].half() * own[rows]
        # Into an INT8 weight the engine copies them too, without their fractions.
        return to_fp8(dense.float() * shared.reciprocal()).to(weight.dtype)

    inputs = linear(module).input_size_per_partition
    return scaled(numbers, shared.expand(weight.shape[0], 1), inputs)
