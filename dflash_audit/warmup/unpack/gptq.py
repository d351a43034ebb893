"""GPTQ on Marlin: inputs along the first axis, packed along it.

Source: SGLang 0.5.23 `srt/hardware_backend/gpu/quantization/gptq_kernels.py`
(`GPTQMarlinLinearKernel`) and `srt/layers/quantization/utils.py` (`pack_rows`).
"""

from collections.abc import Mapping

import torch

from dflash_audit.tree import Kind, Module
from dflash_audit.warmup.linear import DenseLinear
from dflash_audit.warmup.unpack.fields import fields
from dflash_audit.warmup.unpack.layer import bias, linear, parameter
from dflash_audit.warmup.unpack.scaling import scaled


def marlin(module: Module, stored: Mapping[str, torch.Tensor]) -> DenseLinear:
    """`GPTQMarlinLinearScheme`: symmetric, so `qzeros` is not read, and `g_idx` under act-order alone."""
    packed = stored["qweight"]
    own = parameter(module, "qweight")
    assert own is not None
    bits = 32 // int(own.placement.packed_factor)

    def numbers(rows: slice) -> torch.Tensor:
        # The types uint4b8 and uint8b128: half of the range is zero.
        return fields(packed[:, rows].t(), bits) - float(1 << (bits - 1))

    groups = stored["g_idx"] if _act_order(module) else None
    inputs = linear(module).input_size_per_partition
    return DenseLinear(scaled(numbers, stored["scales"].t(), inputs, groups), bias(module, stored))


def _act_order(module: Module) -> bool:
    """Whether the engine goes by `g_idx`: it then keeps the scales of all ranks on each.

    So it does with one group to a column split over ranks, which is in order.
    """
    scales, layer = parameter(module, "scales"), linear(module)
    assert scales is not None
    split = layer.input_size != layer.input_size_per_partition
    return scales.placement.kind is Kind.CHANNEL_SCALE and not (split and scales.shape[0] == 1)
