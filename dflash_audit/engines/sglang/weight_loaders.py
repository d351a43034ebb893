"""What a weight loader of SGLang copies where, replayed on shapes and dtypes alone.

Source: SGLang 0.5.23 `srt/layers/linear.py` (the `weight_loader` and
`weight_loader_v2` of each linear), `srt/layers/parameter.py`,
`srt/layers/vocab_parallel_embedding.py`, `srt/layers/layernorm.py` and
`default_weight_loader` in `srt/model_loader/weight_utils.py`, as rank 0 on a GPU runs them.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from dflash_audit.copying import (
    COLUMN_KINDS,
    NEVER_COPIED,
    QKV,
    ROW_KINDS,
    Copies,
    View,
    all_of,
    copy_plain,
    copy_scalar,
    copy_vocabulary,
    copy_whole,
)
from dflash_audit.loadplan import Shard
from dflash_audit.refusal import Refused
from dflash_audit.tree import Kind, Linear, Module, Parameter, Placement, Scheme

PRECISION: Final[Mapping[str, int]] = {
    "float8_e4m3fn": 0, "float8_e4m3fnuz": 0, "float8_e5m2": 0, "float8_e5m2fnuz": 0, "float8_e8m0fnu": 0,
    "float16": 1, "bfloat16": 1, "float32": 2, "float64": 3,
}  # fmt: skip
"""Rank of each float dtype; a copy that checks refuses to go down (`_dtype_rank`)."""


def place(module: Module, parameter: Parameter, tensor: View, shard: Shard | None) -> Copies:
    """The copies that fill `parameter` of `module`, or its `shard`, with `tensor`.

    Raises:
        Refused: the loader raises on the tensor's shape or dtype.
    """
    if tensor.dtype in NEVER_COPIED:
        raise Refused(f"torch copies no {tensor.dtype}")
    if module.linear is None or module.scheme is None:
        return OTHER_LOADERS[parameter.placement.kind](parameter, tensor)
    # A bias goes through the linear's first loader, whatever its scheme.
    scheme = Scheme("bias", "v1", (parameter,)) if parameter.name == "bias" else module.scheme
    return LINEAR_LOADERS[module.module_class](module.linear, scheme, parameter, tensor, shard)


# Linears


def _replicated(
    linear: Linear, scheme: Scheme, parameter: Parameter, tensor: View, shard: Shard | None
) -> Copies:
    del linear, scheme, shard
    return copy_whole(all_of(parameter), tensor.at_least_1d())


def _column(
    linear: Linear, scheme: Scheme, parameter: Parameter, tensor: View, shard: Shard | None
) -> Copies:
    del linear, shard
    at = parameter.placement
    if scheme.loader == "v1":
        if at.output_dim is not None:
            tensor = tensor.narrow(at.output_dim, 0, parameter.shape[at.output_dim])
        return copy_whole(all_of(parameter), tensor.at_least_1d())
    tensor = tensor.at_least_1d()
    if at.kind in COLUMN_KINDS and at.output_dim is not None:
        tensor = tensor.narrow(at.output_dim, 0, parameter.shape[at.output_dim])
        return _copy_with_check(parameter, tensor)
    return copy_whole(all_of(parameter), tensor)


def _copy_with_check(parameter: Parameter, tensor: View) -> Copies:
    copies = copy_whole(all_of(parameter), tensor)
    if parameter.dtype == tensor.dtype:
        return copies
    target, loaded = PRECISION.get(parameter.dtype), PRECISION.get(tensor.dtype)
    if target is None or loaded is None:
        raise Refused(f"a copy of {tensor.dtype} into {parameter.dtype} is not supported")
    if target < loaded:
        raise Refused(f"a copy of {tensor.dtype} down to {parameter.dtype} is not allowed")
    return copies


def _row(linear: Linear, scheme: Scheme, parameter: Parameter, tensor: View, shard: Shard | None) -> Copies:
    del linear, shard
    at = parameter.placement
    if scheme.loader == "v2":
        tensor = tensor.at_least_1d()
    if at.input_dim is not None and (scheme.loader == "v1" or at.kind in ROW_KINDS):
        tensor = tensor.narrow_or_pad(at.input_dim, 0, parameter.shape[at.input_dim])
    return copy_whole(all_of(parameter), tensor.at_least_1d())


def _merged_column(
    linear: Linear, scheme: Scheme, parameter: Parameter, tensor: View, shard: Shard | None
) -> Copies:
    index = None if shard is None else int(shard)
    return _fused(linear, scheme, parameter, tensor, index, View.narrow_or_pad)


def _qkv(linear: Linear, scheme: Scheme, parameter: Parameter, tensor: View, shard: Shard | None) -> Copies:
    index = None if shard is None else QKV[shard]
    return _fused(linear, scheme, parameter, tensor, index, View.narrow)


def _joined(parts: Iterable[Copies]) -> Copies:
    return tuple(copy for copies in parts for copy in copies)


Cut = Callable[[View, int, int, int], View]
"""How rank 0's rows are taken from a shard's tensor: (tensor, axis, start, length)."""


def _fused(
    linear: Linear, scheme: Scheme, parameter: Parameter, tensor: View, index: int | None, cut: Cut
) -> Copies:
    """Fill one shard of a fused parameter, or all of it from a tensor that is stored fused."""
    if index is not None:
        return _fused_shard(linear, scheme, parameter, tensor, index, cut)
    at = parameter.placement
    if scheme.loader == "v2" and at.kind is Kind.TENSOR_SCALE:
        if math.prod(tensor.shape) != 1:
            raise Refused(f"one scale for the fused matrix is needed, got the shape {list(tensor.shape)}")
        # q, k and v each take it, or every matrix that a merged column's parameter has a scale for.
        scales = len(QKV) if cut is View.narrow else parameter.shape[0]
        return _joined(copy_scalar(parameter, tensor, scale) for scale in range(scales))
    if at.output_dim is None:
        return _fused_whole(scheme, parameter, tensor)
    if scheme.loader == "v2" and at.kind is Kind.BLOCK_SCALE:
        return _fused_block_scale(linear, scheme, parameter, tensor, at.output_dim, cut)
    copies: Copies = ()
    offset = 0
    for shard, size in enumerate(linear.stored_sizes):
        length, start = _packed(at, size, offset)
        part = tensor.narrow(at.output_dim, start, length)
        copies += _fused_shard(linear, scheme, parameter, part, shard, cut)
        offset += size
    return copies


def _fused_whole(scheme: Scheme, parameter: Parameter, tensor: View) -> Copies:
    if parameter.placement.scalar_per_shard and scheme.loader == "v1":
        return copy_scalar(parameter, tensor, 0)
    return copy_whole(all_of(parameter), tensor)


def _fused_block_scale(
    linear: Linear,
    scheme: Scheme,
    parameter: Parameter,
    tensor: View,
    axis: int,
    cut: "Cut",
) -> Copies:
    """Block scales stored fused: gate and up round a shard's blocks up, q, k and v down."""
    merged = cut is View.narrow_or_pad
    rows = _block_rows(scheme, parameter if merged else None)
    ranks = linear.output_size // linear.output_size_per_partition
    copies: Copies = ()
    offset = placed = 0
    for size, own in zip(linear.stored_sizes, linear.output_partition_sizes, strict=True):
        blocks = -(-size // rows) if merged else size // rows
        part = tensor.narrow(axis, offset, blocks)
        length, start = (blocks // ranks, offset // ranks) if merged else (own // rows, placed // rows)
        copies += copy_whole(all_of(parameter).narrow(axis, start, length), cut(part, axis, 0, length))
        offset += blocks
        placed += own
    return copies


def _block_rows(scheme: Scheme, parameter: Parameter | None) -> int:
    if scheme.block_size is None:
        raise Refused("the quantization config holds no weight_block_size to place a block scale by")
    if parameter is not None and parameter.placement.scale_per_row:
        return 1
    return scheme.block_size[0]


def _fused_shard(
    linear: Linear,
    scheme: Scheme,
    parameter: Parameter,
    tensor: View,
    index: int,
    cut: Cut,
) -> Copies:
    at = parameter.placement
    if (scheme.loader == "v2" and at.kind is Kind.TENSOR_SCALE) or (
        scheme.loader == "v1" and at.scalar_per_shard
    ):
        return copy_scalar(parameter, tensor, index)
    if at.output_dim is None or (scheme.loader == "v2" and at.kind not in COLUMN_KINDS):
        return copy_whole(all_of(parameter), tensor)
    size = linear.output_partition_sizes[index]
    offset = sum(linear.output_partition_sizes[:index])
    if scheme.loader == "v2" and at.kind is Kind.BLOCK_SCALE:
        rows = _block_rows(scheme, parameter)
        size, offset = -(-size // rows), -(-offset // rows)
    length, start = _packed(at, size, offset)
    into = all_of(parameter).narrow(at.output_dim, start, length)
    return copy_whole(into, cut(tensor, at.output_dim, 0, length))


def _packed(at: Placement, size: int, offset: int) -> tuple[int, int]:
    """Size and offset of a shard in stored numbers, where it is packed along the output."""
    if at.packed_dim is None or at.packed_dim != at.output_dim:
        return size, offset
    return round(size // at.packed_factor), round(offset // at.packed_factor)


LINEAR_LOADERS: Final[Mapping[str, Callable[[Linear, Scheme, Parameter, View, Shard | None], Copies]]] = {
    "ReplicatedLinear": _replicated,
    "ColumnParallelLinear": _column,
    "MergedColumnParallelLinear": _merged_column,
    "QKVParallelLinear": _qkv,
    "RowParallelLinear": _row,
}


# Everything else


def _exact(parameter: Parameter, tensor: View) -> Copies:
    return copy_whole(all_of(parameter), tensor)


def _sharded(parameter: Parameter, tensor: View) -> Copies:
    return copy_plain(parameter, tensor.narrow(0, 0, parameter.shape[0]))


OTHER_LOADERS: Final[Mapping[Kind, Callable[[Parameter, View], Copies]]] = {
    Kind.PLAIN: copy_plain,
    Kind.EXACT: _exact,
    Kind.SHARDED: _sharded,
    Kind.VOCABULARY: copy_vocabulary,
}
