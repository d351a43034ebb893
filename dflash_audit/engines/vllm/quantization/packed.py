"""The packed integer layers of GPTQ and AWQ checkpoints.

Source: vLLM 0.33.0 `model_executor/layers/quantization/auto_gptq.py`, `auto_awq.py` and
`utils/marlin_utils.py`. A kernel is found for any shape: Humming, which vLLM installs, takes all.
"""

from typing import Any, Final

from dflash_audit.engines.vllm.quantization.experts import Experts, both, scheme
from dflash_audit.refusal import Refused
from dflash_audit.tree import Kind, Linear, Parameter, Placement, Scheme

GPTQ_EXPERTS: Final = "AutoGPTQMoEMethod"

MARLIN_CARD: Final = 75
"""The least card on which Marlin takes anything (`query_marlin_supported_quant_types`)."""

MARLIN_GROUPS: Final = (-1, 32, 64, 128)
MARLIN_HIDDEN: Final = 128
MARLIN_TILE: Final = 64
SMALLEST_GROUP: Final = 32


def whole(value: Any, field: str) -> int:
    """A number that the engine calculates with; refused where it is none."""
    if not isinstance(value, int):
        raise Refused(f"{field} must be an integer, got {value!r}")
    return int(value)


def check_card(capability: int) -> None:
    """Refuse a card that Marlin has no kernel for."""
    if capability < MARLIN_CARD:
        raise Refused(f"Marlin needs compute capability {MARLIN_CARD / 10}, the card has {capability / 10}")


def group_of(layer: Linear, group_size: int) -> int:
    """Inputs a group; -1 stands for all of the layer's."""
    if group_size == 0:
        raise Refused("group_size must not be 0")
    return layer.input_size if group_size == -1 else group_size


def gptq(layer: Linear, bits: int, group_size: int) -> Scheme:
    """`AutoGPTQLinearMethod`: packed along the inputs."""
    if group_size not in MARLIN_GROUPS:
        raise Refused(f"Marlin does not support group_size = {group_size}, only {list(MARLIN_GROUPS)}")
    pack = 32 // bits
    rows, columns = layer.output_size_per_partition, layer.input_size_per_partition
    whole_scales = group_size == -1 and layer.input_size != columns
    groups = (layer.input_size if whole_scales else columns) // group_of(layer, group_size)
    packed = Placement(Kind.PACKED, output_dim=1, input_dim=0, packed_dim=0, packed_factor=pack)
    if whole_scales:
        scales = Placement(Kind.CHANNEL_SCALE, output_dim=1)
        zeros = Placement(Kind.PACKED_COLUMN, output_dim=1, packed_dim=1, packed_factor=pack)
    else:
        scales = Placement(Kind.GROUP_SCALE, output_dim=1, input_dim=0)
        zeros = Placement(Kind.PACKED, output_dim=1, input_dim=0, packed_dim=1, packed_factor=pack)
    parameters = (
        Parameter("qweight", (columns // pack, rows), "int32", packed),
        Parameter("scales", (groups, rows), "bfloat16", scales),
        Parameter("qzeros", (groups, rows // pack), "int32", zeros),
    )
    return Scheme("AutoGPTQLinearMethod", "v2", parameters)


def awq(layer: Linear, bits: int, group_size: int, zero_point: Any) -> Scheme:
    """`AutoAWQMarlinLinearMethod`, or `AutoAWQLinearMethod` where Marlin does not take it.

    A `zero_point` of None stands for layouts with one and without (`query_marlin_supported_quant_types`).
    """
    group = group_of(layer, group_size)
    columns, rows = layer.input_size_per_partition, layer.output_size_per_partition
    fits = group_size == -1 or group_size >= layer.input_size or columns % group_size == 0
    if (zero_point is None or zero_point) and bits == 4 and group_size in MARLIN_GROUPS and fits:
        return awq_on_marlin(layer, bits, group_size)
    if columns % group or rows % (32 // bits):
        raise Refused("the input or output size is not aligned with the quantized weight shape")
    return _awq("AutoAWQLinearMethod", layer, bits, group)


def awq_on_marlin(layer: Linear, bits: int, group_size: int) -> Scheme:
    """`AutoAWQMarlinLinearMethod`, which checks no sizes of its own."""
    return _awq("AutoAWQMarlinLinearMethod", layer, bits, group_of(layer, group_size))


def _awq(name: str, layer: Linear, bits: int, group: int) -> Scheme:
    pack = 32 // bits
    rows, columns = layer.output_size_per_partition, layer.input_size_per_partition
    packed = Placement(Kind.PACKED, output_dim=1, input_dim=0, packed_dim=1, packed_factor=pack)
    scales = Placement(Kind.GROUP_SCALE, output_dim=1, input_dim=0)
    parameters = (
        Parameter("qweight", (columns, rows // pack), "int32", packed),
        Parameter("qzeros", (columns // group, rows // pack), "int32", packed),
        Parameter("scales", (columns // group, rows), "bfloat16", scales),
    )
    return Scheme(name, "v2", parameters)


def gptq_experts(layer: Experts, bits: int, group_size: int, padded: bool = True) -> Scheme:
    """`AutoGPTQMoEMethod`, with a place for biases, or `MoeWNA16Method` where Marlin does not take it."""
    if not _marlin_takes(layer, group_size, padded):
        return _other_experts(layer, bits, group_size, zero_point=False, zeros_kept=True)
    pack, rows, hidden, inner = 32 // bits, 2 * layer.inner, layer.hidden, layer.inner
    groups = (1, 1) if group_size == -1 else (hidden // group_size, inner // group_size)
    return scheme(
        GPTQ_EXPERTS,
        both("qweight", layer, (hidden // pack, rows), (inner // pack, hidden), "int32"),
        both("scales", layer, (groups[0], rows), (groups[1], hidden), "bfloat16"),
        both("qzeros", layer, (groups[0], rows // pack), (groups[1], hidden // pack), "int32"),
        both("bias", layer, (rows,), (hidden,), "bfloat16"),
    )


def awq_experts(layer: Experts, bits: int, group_size: int, zero_point: bool, padded: bool = True) -> Scheme:
    """`AutoAWQMoEMethod`, or `MoeWNA16Method` where Marlin does not take it."""
    if not _marlin_takes(layer, group_size, padded):
        return _other_experts(layer, bits, group_size, zero_point, zeros_kept=False)
    _refuse_one_group(group_size)
    pack, rows, hidden, inner = 32 // bits, 2 * layer.inner, layer.hidden, layer.inner
    groups = (hidden // group_size, inner // group_size)
    return scheme(
        "AutoAWQMoEMethod",
        both("qweight", layer, (hidden, rows // pack), (inner, hidden // pack), "int32"),
        both("scales", layer, (groups[0], rows), (groups[1], hidden), "bfloat16"),
        both("qzeros", layer, (groups[0], rows // pack), (groups[1], hidden // pack), "int32"),
    )


def _marlin_takes(layer: Experts, group_size: int, padded: bool) -> bool:
    """Whether Marlin takes the experts, `padded` to its tiles or as they are.

    Source: `check_moe_marlin_supports_config` in `utils/marlin_utils.py`.
    """
    if padded:
        whole = group_size <= 0 or layer.inner % group_size == 0
    else:
        whole = layer.inner % max(MARLIN_TILE, group_size) == 0
    return layer.hidden % MARLIN_HIDDEN == 0 and whole and group_size in MARLIN_GROUPS


def _other_experts(layer: Experts, bits: int, group_size: int, zero_point: bool, zeros_kept: bool) -> Scheme:
    """`MoeWNA16Method`: in bytes, its groups halved until they divide the experts.

    Source: `moe_wna16.py`. An empty place is there for zeros that are not read where `zeros_kept`.
    """
    _refuse_one_group(group_size)
    while layer.inner % group_size or layer.hidden % group_size:
        group_size //= 2
        if group_size < SMALLEST_GROUP:
            raise Refused(f"no group of {SMALLEST_GROUP} or more divides the experts of {layer.prefix}")
    pack, rows, hidden, inner = 8 // bits, 2 * layer.inner, layer.hidden, layer.inner
    groups = (hidden // group_size, inner // group_size)
    parameters = [
        both("qweight", layer, (rows, hidden // pack), (hidden, inner // pack), "uint8"),
        both("scales", layer, (rows, groups[0]), (hidden, groups[1]), "bfloat16"),
    ]
    if zero_point:
        first, second = (rows // pack, groups[0]), (hidden // pack, groups[1])
        parameters.append(both("qzeros", layer, first, second, "uint8"))
    elif zeros_kept:
        parameters.append(tuple(Parameter(f"{each}_qzeros", (0,), "int32") for each in ("w13", "w2")))
    return scheme("MoeWNA16Method", *parameters)


def _refuse_one_group(group_size: int) -> None:
    """One group for all inputs is -1, by which the engine divides here."""
    if group_size <= 0:
        raise Refused("experts of one group for all inputs would have a negative number of groups")
