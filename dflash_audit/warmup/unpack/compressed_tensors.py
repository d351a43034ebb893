"""compressed-tensors, unpacked by its own functions.

Those used are in all of 0.17 to 0.20. The library takes seconds to import, so
it is imported with this file, which the registry does for its schemes alone.

Source: SGLang 0.5.23 `srt/layers/quantization/compressed_tensors/schemes/`.
"""

from collections.abc import Mapping
from functools import partial

import torch
from compressed_tensors.compressors.nvfp4.helpers import unpack_fp4_from_uint8
from compressed_tensors.compressors.pack_quantized.helpers import unpack_from_int32

from dflash_audit.refusal import Refused
from dflash_audit.tree import Kind, Module
from dflash_audit.warmup.linear import DenseLinear
from dflash_audit.warmup.unpack.layer import bias, by_row, linear, parameter, scheme
from dflash_audit.warmup.unpack.nvfp4 import on_marlin
from dflash_audit.warmup.unpack.one_scale import requantized
from dflash_audit.warmup.unpack.rounding import (
    fp8_by_group,
    fp8_by_token,
    fp8_static,
    int8_by_token,
    nvfp4,
)
from dflash_audit.warmup.unpack.scaling import Numbers, scaled, scaled_by_block
from dflash_audit.warmup.unpack.w8a8 import by_row as scaled_by_row

USUAL_BLOCK = (128, 128)


def wna16(module: Module, stored: Mapping[str, torch.Tensor]) -> DenseLinear:
    """`CompressedTensorsWNA16`, on Marlin; its `weight_shape` is not read, its `weight_g_idx` is."""
    packed, scales = stored["weight_packed"], stored["weight_scale"]
    bits = _bits(module)
    inputs = linear(module).input_size_per_partition

    def numbers(rows: slice) -> torch.Tensor:
        piece = packed[rows]
        return unpack_from_int32(piece, bits, torch.Size((len(piece), inputs)))

    zeros = None
    if parameter(module, "weight_zero_point") is not None:
        zeros = unpack_from_int32(stored["weight_zero_point"], bits, scales.shape, packed_dim=0)
    groups = stored["weight_g_idx"] if parameter(module, "weight_g_idx") is not None else None
    return DenseLinear(scaled(numbers, scales, inputs, groups, zeros), bias(module, stored))


def w8a16_fp8(module: Module, stored: Mapping[str, torch.Tensor]) -> DenseLinear:
    """`CompressedTensorsW8A16Fp8`, on Marlin, whose scales are in bfloat16; `input_scale` is not read."""
    scales = stored["weight_scale"].bfloat16()
    if _scale_kind(module) is Kind.TENSOR_SCALE:
        scales = by_row(scales, module)
    weight = stored["weight"]
    return DenseLinear(scaled(weight.__getitem__, scales, weight.shape[1]), bias(module, stored))


def w8a8_fp8(module: Module, stored: Mapping[str, torch.Tensor]) -> DenseLinear:
    """`CompressedTensorsW8A8Fp8`: by tensor, by channel or by block."""
    kind = _scale_kind(module)
    if kind is Kind.BLOCK_SCALE:
        block = _block(module)
        weight = scaled_by_block(stored["weight"], stored["weight_scale"], block)
        return DenseLinear(weight, bias(module, stored), partial(fp8_by_group, width=block[1]))
    round_input = fp8_by_token
    if parameter(module, "input_scale") is not None:
        round_input = partial(fp8_static, scale=stored["input_scale"].max())
    if kind is Kind.CHANNEL_SCALE:
        return scaled_by_row(module, stored, round_input)
    weight = requantized(stored["weight"], stored["weight_scale"], module)
    return DenseLinear(weight, bias(module, stored), round_input)


def w8a8_int8(module: Module, stored: Mapping[str, torch.Tensor]) -> DenseLinear:
    """`CompressedTensorsW8A8Int8`: inputs by token, a static `input_scale` or not."""
    if _scale_kind(module) is Kind.CHANNEL_SCALE:
        return scaled_by_row(module, stored, int8_by_token)
    weight = requantized(stored["weight"], stored["weight_scale"], module)
    return DenseLinear(weight, bias(module, stored), int8_by_token)


def w4a16_fp4(module: Module, stored: Mapping[str, torch.Tensor]) -> DenseLinear:
    """`CompressedTensorsW4A16Fp4`, on Marlin; `input_global_scale` is not read.

    Raises:
        Refused: the matrices have global scales that are numbers and differ.
    """
    divisors = stored["weight_global_scale"]
    if not divisors.isnan().any() and len(divisors.unique()) > 1:
        raise Refused(
            "NVFP4 weight-only linear requires all fused projections to share one weight_global_scale, "
            f"got {divisors.tolist()}."
        )
    return on_marlin(module, stored, _fp4(stored["weight_packed"]), 1 / divisors.max())


def w4a4_fp4(module: Module, stored: Mapping[str, torch.Tensor]) -> DenseLinear:
    """`CompressedTensorsW4A4Fp4`: the matrices share the greatest global scale, a divisor, as it is."""
    scales = stored["weight_scale"].float() / stored["weight_global_scale"].max()
    numbers = _fp4(stored["weight_packed"])
    weight = scaled(numbers, scales, linear(module).input_size_per_partition)
    round_input = partial(nvfp4, global_scale=stored["input_global_scale"].max())
    return DenseLinear(weight, bias(module, stored), round_input)


def _fp4(packed: torch.Tensor) -> Numbers:
    def numbers(rows: slice) -> torch.Tensor:
        piece = packed[rows]
        dense: torch.Tensor = unpack_fp4_from_uint8(piece, len(piece), 2 * piece.shape[1])
        return dense

    return numbers


def _bits(module: Module) -> int:
    packed = parameter(module, "weight_packed")
    assert packed is not None
    return 32 // int(packed.placement.packed_factor)


def _scale_kind(module: Module) -> Kind:
    scale = parameter(module, "weight_scale")
    assert scale is not None
    return scale.placement.kind


def _block(module: Module) -> tuple[int, int]:
    """The block of the layer's own config group, which its scales' shape must fit.

    The scheme carries that of the group that targets "Linear"; where it does not
    fit, or there is none, it is the usual one, or what divides the layer evenly.
    """
    scale = parameter(module, "weight_scale")
    assert scale is not None
    layer = linear(module)
    shape = (layer.output_size_per_partition, layer.input_size_per_partition)
    for block in (scheme(module).block_size, USUAL_BLOCK):
        if block and scale.shape == (-(-shape[0] // block[0]), -(-shape[1] // block[1])):
            return block
    return shape[0] // scale.shape[0], shape[1] // scale.shape[1]
