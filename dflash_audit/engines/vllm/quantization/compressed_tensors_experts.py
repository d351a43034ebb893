"""compressed-tensors: from a config group to the scheme of routed experts.

Source: vLLM 0.33.0 `model_executor/layers/quantization/compressed_tensors/compressed_tensors_moe/`
and `fused_moe/oracle/int_wna16.py`.
"""

import math
from fractions import Fraction
from typing import Any, Final

from dflash_audit.engines.vllm.quantization.compressed_tensors import (
    ACTIVATION_FORMATS,
    MXFP4_GROUP,
    WNA16_BITS,
    Group,
    is_fp8_activations,
    is_fp8_both,
    is_mx,
    is_nvfp4,
    is_wna16,
)
from dflash_audit.engines.vllm.quantization.experts import (
    Experts,
    both,
    check_whole_blocks,
    matrices,
    scales_of_blocks,
    scheme,
    tensor_scales,
)
from dflash_audit.engines.vllm.quantization.packed import MARLIN_HIDDEN, check_card
from dflash_audit.quantization.compressed_tensors.args import QuantizationArgs
from dflash_audit.quantization.compressed_tensors.schemes import NVFP4_GROUP
from dflash_audit.refusal import NotModelled, Refused
from dflash_audit.tree import Parameter, Scheme

FP8: Final = "float8_e4m3fn"

MARLIN_BITS: Final = ((4, True), (4, False), (8, True))
"""(bits, symmetric) that Marlin's experts take; those of Triton's are the same."""

HUMMING_FIRST: Final = 90
"""The card on which Humming comes before Marlin, and leaves it what has zero points."""


def experts_scheme(layer: Experts, group: Group, layout: Any) -> Scheme:
    """`CompressedTensorsMoEMethod.get_moe_method`, for experts of this group in this format."""
    weights, activations = group.weights, group.activations
    if is_mx(weights, 4):
        if is_fp8_activations(activations):
            raise NotModelled("MXFP4 experts with FP8 activations are not modelled for vLLM")
        return _mxfp4(layer)
    if is_mx(weights, 8) and group.byte_scales:
        return _mxfp8(layer)
    if is_wna16(group):
        if weights.num_bits not in WNA16_BITS or layout != "pack-quantized":
            raise Refused("experts of weights alone want the format pack-quantized")
        return _packed(layer, weights)
    if is_nvfp4(weights):
        if activations is not None and not is_nvfp4(activations):
            raise Refused("NVFP4 weights want NVFP4 activations or none")
        return _nvfp4(layer)
    if activations is None:
        # The engine reads the activations' bits here.
        raise Refused(f"no compressed-tensors scheme was found for {layer.prefix}")
    if is_fp8_both(weights, activations):
        return _fp8(layer, weights, activations)
    if _int8_by_token(weights, activations):
        return _int8(layer, weights)
    if weights.type == "int" and weights.num_bits == 4 and layout in ("pack-quantized", *ACTIVATION_FORMATS):
        raise NotModelled("experts of integers with activations of 8 bits are not modelled for vLLM")
    raise Refused(f"no compressed-tensors scheme was found for {layer.prefix}")


def _fp8(layer: Experts, weights: QuantizationArgs, activations: QuantizationArgs) -> Scheme:
    """`CompressedTensorsW8A8Fp8MoEMethod`."""
    check_card(layer.capability)
    pair = (weights.strategy, activations.strategy)
    by_channel = pair == ("channel", "token")
    if pair != ("tensor", "tensor") and not by_channel and weights.strategy != "block":
        raise Refused(f"FP8 experts take no weights by {pair[0]} with activations by {pair[1]}")
    name, held = "CompressedTensorsW8A8Fp8MoEMethod", matrices("weight", layer, FP8)
    if weights.block_structure is not None:
        check_whole_blocks(layer, weights.block_structure)
        scales = scales_of_blocks("weight_scale", layer, weights.block_structure)
    elif by_channel:
        scales = _channel_scales(layer)
    else:
        scales = tensor_scales("weight_scale", layer)
    if activations.dynamic:
        return scheme(name, held, scales)
    return scheme(name, held, scales, both("input_scale", layer, (), (), "float32"))


def _channel_scales(layer: Experts) -> tuple[Parameter, ...]:
    return both("weight_scale", layer, (2 * layer.inner, 1), (layer.hidden, 1), "float32")


def _int8_by_token(weights: QuantizationArgs, activations: QuantizationArgs) -> bool:
    bits = weights.num_bits == activations.num_bits == 8
    fits = weights.strategy in ("tensor", "channel") and weights.symmetric and not weights.dynamic
    return bits and fits and activations.strategy == "token" and bool(activations.dynamic)


def _int8(layer: Experts, weights: QuantizationArgs) -> Scheme:
    """`CompressedTensorsW8A8Int8MoEMethod`."""
    if weights.strategy != "channel":
        raise Refused("INT8 experts want weights by channel with dynamic activations by token")
    name, held = "CompressedTensorsW8A8Int8MoEMethod", matrices("weight", layer, "int8")
    return scheme(name, held, _channel_scales(layer))


def _mxfp4(layer: Experts) -> Scheme:
    """`CompressedTensorsW4A4Mxfp4MoEMethod`."""
    return scheme(
        "CompressedTensorsW4A4Mxfp4MoEMethod",
        _grouped("weight_packed", layer, 2, "uint8"),
        _grouped("weight_scale", layer, MXFP4_GROUP, "uint8"),
    )


def _mxfp8(layer: Experts) -> Scheme:
    """`CompressedTensorsW8A8Mxfp8MoEMethod`."""
    return scheme(
        "CompressedTensorsW8A8Mxfp8MoEMethod",
        matrices("weight", layer, FP8),
        _grouped("weight_scale", layer, MXFP4_GROUP, "uint8"),
    )


def _nvfp4(layer: Experts) -> Scheme:
    """`CompressedTensorsW4A4Nvfp4MoEMethod`, which has input scales whatever the activations."""
    return scheme(
        "CompressedTensorsW4A4Nvfp4MoEMethod",
        _grouped("weight_packed", layer, 2, "uint8"),
        _grouped("weight_scale", layer, NVFP4_GROUP, FP8),
        tensor_scales("weight_global_scale", layer),
        tensor_scales("input_global_scale", layer),
    )


def _grouped(name: str, layer: Experts, size: int, dtype: str) -> tuple[Parameter, ...]:
    """One stored number for so many inputs of each matrix."""
    first, second = (2 * layer.inner, layer.hidden // size), (layer.hidden, layer.inner // size)
    return both(name, layer, first, second, dtype)


def _packed(layer: Experts, args: QuantizationArgs) -> Scheme:
    """`CompressedTensorsWNA16MoEMethod`."""
    _check_kernel(layer, args)
    pack, group = Fraction(32, args.num_bits), args.group_size or -1
    if args.strategy == "channel":
        first_groups = second_groups = 1
    else:
        if layer.hidden % group or layer.inner % group:
            raise Refused(f"{layer.hidden} and {layer.inner} inputs of experts are not divisible by {group}")
        first_groups, second_groups = layer.hidden // group, layer.inner // group
    first, second = (2 * layer.inner, layer.hidden // pack), (layer.hidden, layer.inner // pack)
    parameters = [both("weight_packed", layer, first, second, "int32")]
    first, second = (2 * layer.inner, first_groups), (layer.hidden, second_groups)
    parameters.append(both("weight_scale", layer, first, second, "bfloat16"))
    if not args.symmetric:
        if 2 * layer.inner % pack or layer.hidden % pack:
            raise Refused(f"{2 * layer.inner} and {layer.hidden} outputs of experts do not fill packed zeros")
        first = (math.floor(2 * layer.inner / pack), first_groups)
        second = (math.floor(layer.hidden / pack), second_groups)
        parameters.append(both("weight_zero_point", layer, first, second, "int32"))
    # Registered in the model's dtype, the second one first.
    parameters.append(both("weight_shape", layer, (2,), (2,), "bfloat16")[::-1])
    return scheme("CompressedTensorsWNA16MoEMethod", *parameters)


def _check_kernel(layer: Experts, args: QuantizationArgs) -> None:
    """Refuse what no kernel takes (`select_wna16_moe_backend`): one scale a row goes to Marlin alone."""
    kind = (args.num_bits, args.symmetric)
    if kind == (8, False):
        raise Refused("no kernel takes experts of 8 bits with zero points")
    humming = layer.capability == HUMMING_FIRST and args.symmetric
    marlin = kind in MARLIN_BITS and not humming and layer.hidden % MARLIN_HIDDEN == 0
    if args.strategy == "channel" and not marlin:
        raise Refused(f"experts of {args.num_bits} bits by channel are taken by no kernel here")
