"""The schemes of compressed-tensors linears and the parameters that each registers.

Source: SGLang 0.5.23 `srt/layers/quantization/compressed_tensors/schemes/`,
`create_weights` of each class; capabilities are its `get_min_capability`.
"""

from typing import Final

from dflash_audit.quantization.compressed_tensors.args import QuantizationArgs
from dflash_audit.refusal import Refused
from dflash_audit.tree import Kind, Linear, Parameter, Placement

MIN_CAPABILITY: Final[dict[str, int]] = {
    "CompressedTensorsWNA16": 80,
    "CompressedTensorsW8A8Int8": 80,
    "CompressedTensorsW8A8Fp8": 89,
    "CompressedTensorsW8A16Fp8": 80,
    "CompressedTensorsW4A4Fp4": 100,
    "CompressedTensorsW4A16Fp4": 80,
}

NVFP4_GROUP: Final = 16

WEIGHT: Final = Placement(Kind.WEIGHT, output_dim=0, input_dim=1)
CHANNEL_SCALE: Final = Placement(Kind.CHANNEL_SCALE, output_dim=0)
GROUP_SCALE: Final = Placement(Kind.GROUP_SCALE, output_dim=0, input_dim=1)
BLOCK_SCALE: Final = Placement(Kind.BLOCK_SCALE, output_dim=0, input_dim=1)
TENSOR_SCALE: Final = Placement(Kind.TENSOR_SCALE)


def wna16(layer: Linear, args: QuantizationArgs) -> tuple[Parameter, ...]:
    """Packed INT4 or INT8 weights by group or channel (`CompressedTensorsWNA16`)."""
    # -1 in the config and a missing group_size are the same to the engine.
    group = args.group_size if args.group_size not in (None, -1) else None
    if group is None and args.strategy != "channel":
        raise Refused(f"strategy {args.strategy} without a group_size: Marlin knows groups and channels only")
    per_group = layer.input_size if group is None else group
    if per_group == 0:
        raise Refused(f"{layer.prefix} has a group for every 0 inputs")
    act_order = args.actorder == "group"
    row_parallel = layer.input_size != layer.input_size_per_partition
    whole_scales = act_order or (group is None and row_parallel)
    columns = layer.input_size if whole_scales else layer.input_size_per_partition
    if not whole_scales and columns % per_group:
        raise Refused(f"input size {columns} of {layer.prefix} is not a multiple of group_size {group}")
    return _wna16_parameters(layer, args, columns // per_group, whole_scales)


def _wna16_parameters(
    layer: Linear, args: QuantizationArgs, groups: int, whole_scales: bool
) -> tuple[Parameter, ...]:
    pack = 32 // args.num_bits
    rows, columns = layer.output_size_per_partition, layer.input_size_per_partition
    packed = Placement(Kind.PACKED, output_dim=0, input_dim=1, packed_dim=1, packed_factor=pack)
    scale = CHANNEL_SCALE if whole_scales else GROUP_SCALE
    parameters = [
        Parameter("weight_packed", (rows, columns // pack), "int32", packed),
        Parameter("weight_scale", (rows, groups), "bfloat16", scale),
        Parameter("weight_shape", (2,), "int64", Placement(Kind.BASE)),
    ]
    if not args.symmetric:
        kind = Kind.PACKED_COLUMN if whole_scales else Kind.PACKED
        zero = Placement(
            kind, output_dim=0, input_dim=None if whole_scales else 1, packed_dim=0, packed_factor=pack
        )
        parameters.append(Parameter("weight_zero_point", (rows // pack, groups), "int32", zero))
    if args.actorder == "group":
        parameters.append(Parameter("weight_g_idx", (columns,), "int32", Placement(Kind.ROW, input_dim=0)))
    return tuple(parameters)


def w8a8_int8(
    layer: Linear, args: QuantizationArgs, activations: QuantizationArgs, static: bool
) -> tuple[Parameter, ...]:
    """INT8 weights and activations (`CompressedTensorsW8A8Int8`)."""
    parameters = [
        Parameter("weight", _dense_shape(layer), "int8", WEIGHT),
        _weight_scale(layer, args.strategy),
    ]
    if static:
        parameters.append(Parameter("input_scale", (1,), "float32", TENSOR_SCALE))
        if not activations.symmetric:
            parameters.append(Parameter("input_zero_point", (1,), "int8", TENSOR_SCALE))
    return tuple(parameters)


def w8a8_fp8(layer: Linear, args: QuantizationArgs, static: bool) -> tuple[Parameter, ...]:
    """FP8 weights and activations (`CompressedTensorsW8A8Fp8`)."""
    if args.block_structure is not None:
        check_blocks(layer, args.block_structure)
        scale = _block_scale(layer, args.block_structure)
    else:
        scale = _weight_scale(layer, args.strategy)
    return (
        Parameter("weight", _dense_shape(layer), "float8_e4m3fn", WEIGHT),
        scale,
        *_input_scale(layer, static),
    )


def w8a16_fp8(layer: Linear, args: QuantizationArgs, static: bool) -> tuple[Parameter, ...]:
    """FP8 weights alone (`CompressedTensorsW8A16Fp8`)."""
    if args.strategy not in ("channel", "tensor"):
        raise Refused(f"FP8 weights alone need strategy channel or tensor, got {args.strategy}")
    weight = Parameter("weight", _dense_shape(layer), "float8_e4m3fn", WEIGHT)
    return (weight, _weight_scale(layer, args.strategy), *_input_scale(layer, static))


def nvfp4(layer: Linear, input_global_scale: bool) -> tuple[Parameter, ...]:
    """NVFP4 weights (`CompressedTensorsW4A4Fp4`, `CompressedTensorsW4A16Fp4`)."""
    rows, columns = _dense_shape(layer)
    scalars = (len(layer.output_partition_sizes),)
    parameters = [
        Parameter("weight_packed", (rows, columns // 2), "uint8", WEIGHT),
        Parameter("weight_global_scale", scalars, "float32", TENSOR_SCALE),
        Parameter("weight_scale", (rows, columns // NVFP4_GROUP), "float8_e4m3fn", GROUP_SCALE),
    ]
    if input_global_scale:
        parameters.append(Parameter("input_global_scale", scalars, "float32", TENSOR_SCALE))
    return tuple(parameters)


def check_blocks(layer: Linear, block: tuple[int, int]) -> None:
    """Refuse a layer whose fused or partitioned matrices end inside a block.

    Source: SGLang 0.5.23 `srt/layers/quantization/fp8_utils.py`, `validate_fp8_block_shape`.
    """
    rows, columns = block
    row_split = layer.input_size != layer.input_size_per_partition
    if row_split and layer.input_size_per_partition % columns:
        raise Refused(f"{layer.input_size_per_partition} inputs a rank are no multiple of block_k {columns}")
    column_split = layer.output_size != layer.output_size_per_partition
    sizes = layer.output_partition_sizes
    # The last of several fused matrices may end inside a block, where no rank splits it.
    for size in sizes if column_split else sizes[:-1]:
        if size % rows:
            raise Refused(f"{size} outputs of a fused matrix are no multiple of block_n {rows}")


def _dense_shape(layer: Linear) -> tuple[int, int]:
    return layer.output_size_per_partition, layer.input_size_per_partition


def _weight_scale(layer: Linear, strategy: str) -> Parameter:
    if strategy == "channel":
        return Parameter("weight_scale", (layer.output_size_per_partition, 1), "float32", CHANNEL_SCALE)
    return Parameter("weight_scale", (len(layer.output_partition_sizes),), "float32", TENSOR_SCALE)


def _block_scale(layer: Linear, block: tuple[int, int]) -> Parameter:
    rows, columns = _dense_shape(layer)
    shape = (-(-rows // block[0]), -(-columns // block[1]))
    return Parameter("weight_scale", shape, "float32", BLOCK_SCALE)


def _input_scale(layer: Linear, static: bool) -> tuple[Parameter, ...]:
    if not static:
        return ()
    return (Parameter("input_scale", (len(layer.output_partition_sizes),), "float32", TENSOR_SCALE),)
