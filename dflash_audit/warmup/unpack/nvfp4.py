"""NVFP4 on Marlin, which leaves the inputs alone.

Source: SGLang 0.5.23 `srt/layers/quantization/marlin_utils_fp4.py`
(`prepare_nvfp4_layer_for_marlin`) and `kernels/jit/csrc/gemm/marlin/marlin_template.h`.
"""

from collections.abc import Mapping
from typing import Final

import torch

from dflash_audit.tree import Module
from dflash_audit.warmup.linear import DenseLinear
from dflash_audit.warmup.unpack.layer import bias, linear
from dflash_audit.warmup.unpack.scaling import Numbers, scaled

TILE: Final = 32
"""Outputs whose bias is put into another order together (`marlin_permute_bias` in `marlin_utils.py`)."""

ORDER: Final = tuple(2 * pair + offset for pair in range(4) for offset in (0, 1, 8, 9, 16, 17, 24, 25))
"""The output whose bias each output of a tile is given (`get_scale_perms` in `marlin_utils.py`)."""


def on_marlin(
    module: Module, stored: Mapping[str, torch.Tensor], numbers: Numbers, global_scale: torch.Tensor
) -> DenseLinear:
    """`numbers` times `weight_scale` by group times `global_scale`, a scalar that is rounded to bfloat16.

    Marlin's scales have no sign. Its bias is in the order of its tiles, and is added to
    outputs that are in their own.
    """
    scales = stored["weight_scale"].float().abs() * global_scale.bfloat16().float()
    weight = scaled(numbers, scales, linear(module).input_size_per_partition)
    return DenseLinear(weight, _displaced(bias(module, stored)))


def _displaced(bias: torch.Tensor | None) -> torch.Tensor | None:
    """The bias as it meets the outputs, which the kernel pads to whole tiles."""
    if bias is None:
        return None
    padded = torch.nn.functional.pad(bias, (0, -len(bias) % TILE))
    return padded.unflatten(0, (-1, TILE))[:, list(ORDER)].flatten()[: len(bias)]
