"""What a weight loader of vLLM copies where, replayed on shapes and dtypes alone.

Source: vLLM 0.33.0 `model_executor/layers/linear.py` (the `weight_loader` and
`weight_loader_v2` of each linear), `model_executor/parameter.py`,
`model_executor/layers/vocab_parallel_embedding.py` and `default_weight_loader` in
`model_executor/model_loader/weight_utils.py`, as rank 0 runs them. Nothing looks at a
dtype: a tensor of another one is cast with a line in the log.
"""

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
from dflash_audit.engines.vllm.quantization.experts import CLASS, SCORES
from dflash_audit.loadplan import Shard
from dflash_audit.refusal import Refused
from dflash_audit.tree import Kind, Linear, Module, Parameter, Placement, Scheme


def place(module: Module, parameter: Parameter, tensor: View, shard: Shard | None) -> Copies:
    """The copies that fill `parameter` of `module`, or its `shard`, with `tensor`.

    Raises:
        Refused: the loader raises on the tensor's shape.
    """
    if tensor.dtype in NEVER_COPIED:
        raise Refused(f"torch copies no {tensor.dtype}")
    if module.module_class == CLASS and parameter.name != SCORES:
        raise Refused("the loader of routed experts has to be told which expert and matrix a tensor is for")
    if module.linear is None or module.scheme is None:
        return OTHER_LOADERS[parameter.placement.kind](parameter, tensor)
    if parameter.name == "bias":
        return _bias(module.linear, parameter, tensor, shard)
    return LINEAR_LOADERS[module.module_class](module.linear, module.scheme, parameter, tensor, shard)


def _bias(linear: Linear, parameter: Parameter, tensor: View, shard: Shard | None) -> Copies:
    """A bias goes through the first loader of its layer, which cuts a column-parallel one."""
    if linear.module_class in ("ReplicatedLinear", "RowParallelLinear"):
        return copy_whole(all_of(parameter), tensor.at_least_1d())
    if linear.module_class == "ColumnParallelLinear":
        return copy_whole(all_of(parameter), tensor.narrow(0, 0, parameter.shape[0]))
    if shard is None:
        return _each_shard(linear.stored_sizes, tensor, 0, lambda i, t: _bias(linear, parameter, t, i))
    into, size = _shard_of(linear, parameter, 0, _index(shard))
    return copy_whole(into, tensor.narrow(0, 0, size))


def _each_shard(sizes: Iterable[int], tensor: View, axis: int, fill: Callable[[int, View], Copies]) -> Copies:
    """Cut a tensor that is stored fused into its matrices, and fill each."""
    copies: Copies = ()
    offset = 0
    for index, size in enumerate(sizes):
        copies += fill(index, tensor.narrow(axis, offset, size))
        offset += size
    return copies


def _shard_of(linear: Linear, parameter: Parameter, axis: int, index: int) -> tuple[View, int]:
    size = linear.output_partition_sizes[index]
    offset = sum(linear.output_partition_sizes[:index])
    return all_of(parameter).narrow(axis, offset, size), size


def _index(shard: Shard) -> int:
    return QKV[shard] if shard in QKV else int(shard)


# Linears


def _replicated(
    linear: Linear, scheme: Scheme, parameter: Parameter, tensor: View, shard: Shard | None
) -> Copies:
    del linear, scheme, shard
    return copy_whole(all_of(parameter), tensor.at_least_1d())


def _column(
    linear: Linear, scheme: Scheme, parameter: Parameter, tensor: View, shard: Shard | None
) -> Copies:
    del linear, scheme, shard
    at, tensor = parameter.placement, tensor.at_least_1d()
    if at.kind in COLUMN_KINDS and at.output_dim is not None:
        tensor = tensor.narrow(at.output_dim, 0, parameter.shape[at.output_dim])
    return copy_whole(all_of(parameter), tensor)


def _row(linear: Linear, scheme: Scheme, parameter: Parameter, tensor: View, shard: Shard | None) -> Copies:
    del linear, scheme, shard
    at, tensor = parameter.placement, tensor.at_least_1d()
    if at.kind in ROW_KINDS and at.input_dim is not None:
        tensor = tensor.narrow(at.input_dim, 0, parameter.shape[at.input_dim])
    return copy_whole(all_of(parameter), tensor)


def _fused(linear: Linear, scheme: Scheme, parameter: Parameter, tensor: View, shard: Shard | None) -> Copies:
    """Fill one shard of a fused parameter, or all of it from a tensor that is stored fused."""
    if shard is not None:
        return _fused_shard(linear, scheme, parameter, tensor, _index(shard))
    at = parameter.placement
    if at.kind is Kind.TENSOR_SCALE:
        scales = [copy_scalar(parameter, tensor, index) for index in range(parameter.shape[0])]
        return tuple(copy for copies in scales for copy in copies)
    if at.output_dim is None or at.kind not in COLUMN_KINDS:
        return _as_it_is(parameter, tensor)
    sizes = linear.stored_sizes
    if at.kind is Kind.BLOCK_SCALE:
        return _fused_blocks(linear, scheme, parameter, tensor, at.output_dim)
    if at.packed_dim == at.output_dim:
        sizes = tuple(_packed(at, size) for size in sizes)
    return _each_shard(
        sizes, tensor, at.output_dim, lambda i, part: _fused_shard(linear, scheme, parameter, part, i)
    )


def _fused_blocks(linear: Linear, scheme: Scheme, parameter: Parameter, tensor: View, axis: int) -> Copies:
    """Block scales stored fused: gate and up follow one another, q, k and v start where their rows do."""
    rows = _block_rows(scheme)
    copies: Copies = ()
    offset = start = 0
    for index, size in enumerate(linear.stored_sizes):
        blocks = -(-size // rows)
        at = offset if linear.module_class == "MergedColumnParallelLinear" else -(-start // rows)
        copies += _fused_shard(linear, scheme, parameter, tensor.narrow(axis, at, blocks), index)
        offset, start = offset + blocks, start + size
    return copies


def _block_rows(scheme: Scheme) -> int:
    if scheme.block_size is None:
        raise Refused("the quantization config holds no weight_block_size to place a block scale by")
    return scheme.block_size[0]


def _fused_shard(linear: Linear, scheme: Scheme, parameter: Parameter, tensor: View, index: int) -> Copies:
    at = parameter.placement
    if at.kind is Kind.TENSOR_SCALE:
        return copy_scalar(parameter, tensor, index)
    if at.output_dim is None or at.kind not in COLUMN_KINDS:
        return _as_it_is(parameter, tensor)
    size = linear.output_partition_sizes[index]
    offset = sum(linear.output_partition_sizes[:index])
    if at.kind is Kind.BLOCK_SCALE:
        rows = _block_rows(scheme)
        size, offset = -(-size // rows), -(-offset // rows)
    elif at.packed_dim == at.output_dim:
        size, offset = _packed(at, size), _packed(at, offset)
    into = all_of(parameter).narrow(at.output_dim, offset, size)
    return copy_whole(into, tensor.narrow(at.output_dim, 0, size))


def _as_it_is(parameter: Parameter, tensor: View) -> Copies:
    """A parameter that knows no shards takes a tensor of its own shape, or one number."""
    return copy_whole(all_of(parameter), tensor.at_least_1d() if parameter.shape == (1,) else tensor)


def _packed(at: Placement, size: int) -> int:
    """Stored numbers along the packed axis."""
    return round(size // at.packed_factor)


LINEAR_LOADERS: Final[Mapping[str, Callable[[Linear, Scheme, Parameter, View, Shard | None], Copies]]] = {
    "GateLinear": _replicated,
    "ReplicatedLinear": _replicated,
    "ColumnParallelLinear": _column,
    "MergedColumnParallelLinear": _fused,
    "QKVParallelLinear": _fused,
    "RowParallelLinear": _row,
}


# Everything else


def _exact(parameter: Parameter, tensor: View) -> Copies:
    return _as_it_is(parameter, tensor)


def _sharded(parameter: Parameter, tensor: View) -> Copies:
    return copy_whole(all_of(parameter), tensor.narrow(0, 0, parameter.shape[0]))


OTHER_LOADERS: Final[Mapping[Kind, Callable[[Parameter, View], Copies]]] = {
    Kind.PLAIN: copy_plain,
    Kind.EXACT: _exact,
    Kind.SHARDED: _sharded,
    Kind.VOCABULARY: copy_vocabulary,
}
