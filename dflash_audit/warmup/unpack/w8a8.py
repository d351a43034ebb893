"""FP8 and INT8 weights with a scale for each row, and inputs by token.

Source: SGLang 0.5.23 `srt/layers/quantization/w8a8_fp8.py` and `w8a8_int8.py`.
"""

from collections.abc import Callable, Mapping

import torch

from dflash_audit.tree import Module
from dflash_audit.warmup.linear import DenseLinear
from dflash_audit.warmup.unpack.fp8 import online
from dflash_audit.warmup.unpack.layer import bias, parameter
from dflash_audit.warmup.unpack.rounding import fp8_by_token, int8_by_token
from dflash_audit.warmup.unpack.scaling import scaled


def fp8(module: Module, stored: Mapping[str, torch.Tensor]) -> DenseLinear:
    """`W8A8Fp8LinearMethod`, for FP8 weights and for dense ones."""
    if parameter(module, "weight_scale") is None:
        return online(module, stored)
    return by_row(module, stored, fp8_by_token)


def int8(module: Module, stored: Mapping[str, torch.Tensor]) -> DenseLinear:
    """`W8A8Int8LinearMethod`."""
    return by_row(module, stored, int8_by_token)


def by_row(
    module: Module,
    stored: Mapping[str, torch.Tensor],
    round_input: Callable[[torch.Tensor], torch.Tensor] | None,
) -> DenseLinear:
    """A `weight` with a `weight_scale` of [outputs, 1]."""
    weight = stored["weight"]
    dense = scaled(weight.__getitem__, stored["weight_scale"], weight.shape[1])
    return DenseLinear(dense, bias(module, stored), round_input)
