"""Whether a weight loader of SGLang takes a tensor, replayed on shapes and dtypes alone.

Source: SGLang 0.5.23 `srt/layers/linear.py` (the `weight_loader` and
`weight_loader_v2` of each linear), `srt/layers/parameter.py`,
`srt/layers/vocab_parallel_embedding.py`, `srt/layers/layernorm.py` and
`default_weight_loader` in `srt/model_loader/weight_utils.py`, as rank 0 on a GPU runs them.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from dflash_audit.refusal import Refused
from dflash_audit.tree import Kind, Linear, Module, Parameter, Placement, Scheme

Shard = str | int
Shape = tuple[int, ...]

QKV: Final[Mapping[Shard, int]] = {"q": 0, "k": 1, "v": 2}

COLUMN_KINDS: Final = frozenset(
    (Kind.WEIGHT, Kind.PACKED, Kind.PACKED_COLUMN, Kind.CHANNEL_SCALE, Kind.GROUP_SCALE, Kind.BLOCK_SCALE)
)
"""Subclasses of `_ColumnvLLMParameter`."""

ROW_KINDS: Final = frozenset((Kind.ROW, Kind.WEIGHT, Kind.PACKED, Kind.GROUP_SCALE, Kind.BLOCK_SCALE))
"""Subclasses of `RowvLLMParameter`."""

PRECISION: Final[Mapping[str, int]] = {
    "float8_e4m3fn": 0, "float8_e4m3fnuz": 0, "float8_e5m2": 0, "float8_e5m2fnuz": 0, "float8_e8m0fnu": 0,
    "float16": 1, "bfloat16": 1, "float32": 2, "float64": 3,
}  # fmt: skip
"""Rank of each float dtype; a copy that checks refuses to go down (`_dtype_rank`)."""


NEVER_COPIED: Final = frozenset(("float4_e2m1fn_x2",))
"""Dtypes that torch 2.14 copies into no other."""


@dataclass(frozen=True, slots=True)
class Incoming:
    """A tensor on its way into a parameter: `dtype` is torch's name."""

    shape: Shape
    dtype: str

    def narrow(self, axis: int, start: int, length: int) -> "Incoming":
        """A slice along `axis`, as `torch.Tensor.narrow` takes it or refuses."""
        size = self._size(axis)
        if length < 0 or start + length > size:
            raise Refused(f"start ({start}) + length ({length}) exceeds dimension size ({size})")
        return self._resized(axis, length)

    def narrow_or_pad(self, axis: int, start: int, length: int) -> "Incoming":
        """As `narrow`, but a tensor that ends too early is padded with zeros."""
        self._size(axis)
        return self._resized(axis, length)

    def at_least_1d(self) -> "Incoming":
        return self if self.shape else Incoming((1,), self.dtype)

    def scalar(self) -> "Incoming":
        """The one number of a scale that may come as a scalar or as one row."""
        if not self.shape:
            return self
        if self.shape[0] != 1:
            raise Refused(f"a scale of one number is needed, got the shape {list(self.shape)}")
        return Incoming(self.shape[1:], self.dtype)

    def _size(self, axis: int) -> int:
        if axis >= len(self.shape):
            raise Refused(f"dimension {axis} is out of range for the shape {list(self.shape)}")
        return self.shape[axis]

    def _resized(self, axis: int, length: int) -> "Incoming":
        return Incoming((*self.shape[:axis], length, *self.shape[axis + 1 :]), self.dtype)


def place(module: Module, parameter: Parameter, tensor: Incoming, shard: Shard | None) -> None:
    """Fill `parameter` of `module`, or its `shard`, with `tensor`.

    Raises:
        Refused: the loader raises on the tensor's shape or dtype.
    """
    if tensor.dtype in NEVER_COPIED:
        raise Refused(f"torch copies no {tensor.dtype}")
    if module.linear is None or module.scheme is None:
        OTHER_LOADERS[parameter.placement.kind](parameter, tensor)
        return
    # A bias goes through the linear's first loader, whatever its scheme.
    scheme = Scheme("bias", "v1", (parameter,)) if parameter.name == "bias" else module.scheme
    LINEAR_LOADERS[module.module_class](module.linear, scheme, parameter, tensor, shard)


def _same(expected: Shape, tensor: Incoming) -> None:
    if expected != tensor.shape:
        raise Refused(f"the parameter's shape is {list(expected)}, the tensor's {list(tensor.shape)}")


# Linears


def _replicated(
    linear: Linear, scheme: Scheme, parameter: Parameter, tensor: Incoming, shard: Shard | None
) -> None:
    del linear, scheme, shard
    _same(parameter.shape, tensor.at_least_1d())


def _column(
    linear: Linear, scheme: Scheme, parameter: Parameter, tensor: Incoming, shard: Shard | None
) -> None:
    del linear, shard
    at = parameter.placement
    if scheme.loader == "v1":
        if at.output_dim is not None:
            tensor = tensor.narrow(at.output_dim, 0, parameter.shape[at.output_dim])
        _same(parameter.shape, tensor.at_least_1d())
        return
    tensor = tensor.at_least_1d()
    if at.kind in COLUMN_KINDS and at.output_dim is not None:
        tensor = tensor.narrow(at.output_dim, 0, parameter.shape[at.output_dim])
        _copy_with_check(parameter, tensor)
        return
    _same(parameter.shape, tensor)


def _copy_with_check(parameter: Parameter, tensor: Incoming) -> None:
    _same(parameter.shape, tensor)
    if parameter.dtype == tensor.dtype:
        return
    target, loaded = PRECISION.get(parameter.dtype), PRECISION.get(tensor.dtype)
    if target is None or loaded is None:
        raise Refused(f"a copy of {tensor.dtype} into {parameter.dtype} is not supported")
    if target < loaded:
        raise Refused(f"a copy of {tensor.dtype} down to {parameter.dtype} is not allowed")


def _row(linear: Linear, scheme: Scheme, parameter: Parameter, tensor: Incoming, shard: Shard | None) -> None:
    del linear, shard
    at = parameter.placement
    if scheme.loader == "v2":
        tensor = tensor.at_least_1d()
    if at.input_dim is not None and (scheme.loader == "v1" or at.kind in ROW_KINDS):
        tensor = tensor.narrow_or_pad(at.input_dim, 0, parameter.shape[at.input_dim])
    _same(parameter.shape, tensor.at_least_1d())


def _merged_column(
    linear: Linear, scheme: Scheme, parameter: Parameter, tensor: Incoming, shard: Shard | None
) -> None:
    index = None if shard is None else int(shard)
    _fused(linear, scheme, parameter, tensor, index, Incoming.narrow_or_pad)


def _qkv(linear: Linear, scheme: Scheme, parameter: Parameter, tensor: Incoming, shard: Shard | None) -> None:
    index = None if shard is None else QKV[shard]
    _fused(linear, scheme, parameter, tensor, index, Incoming.narrow)


Cut = Callable[[Incoming, int, int, int], Incoming]
"""How rank 0's rows are taken from a shard's tensor: (tensor, axis, start, length)."""


def _fused(
    linear: Linear, scheme: Scheme, parameter: Parameter, tensor: Incoming, index: int | None, cut: Cut
) -> None:
    """Fill one shard of a fused parameter, or all of it from a tensor that is stored fused."""
    if index is not None:
        _fused_shard(linear, scheme, parameter, tensor, index, cut)
        return
    at = parameter.placement
    if scheme.loader == "v2" and at.kind is Kind.TENSOR_SCALE:
        if math.prod(tensor.shape) != 1:
            raise Refused(f"one scale for the fused matrix is needed, got the shape {list(tensor.shape)}")
        # q, k and v each take it, or every matrix that a merged column's parameter has a scale for.
        scales = len(QKV) if cut is Incoming.narrow else parameter.shape[0]
        _tensor_scale(parameter, tensor, scales - 1)
    elif at.output_dim is None:
        _fused_whole(scheme, parameter, tensor)
    elif scheme.loader == "v2" and at.kind is Kind.BLOCK_SCALE:
        _fused_block_scale(linear, scheme, parameter, tensor, at.output_dim, cut)
    else:
        offset = 0
        for shard, size in enumerate(linear.stored_sizes):
            length, start = _packed(at, size, offset)
            part = tensor.narrow(at.output_dim, start, length)
            _fused_shard(linear, scheme, parameter, part, shard, cut)
            offset += size


def _fused_whole(scheme: Scheme, parameter: Parameter, tensor: Incoming) -> None:
    if parameter.placement.scalar_per_shard and scheme.loader == "v1":
        _same((), tensor.scalar())
        return
    _same(parameter.shape, tensor)


def _fused_block_scale(
    linear: Linear,
    scheme: Scheme,
    parameter: Parameter,
    tensor: Incoming,
    axis: int,
    cut: "Cut",
) -> None:
    """Block scales stored fused: gate and up round a shard's blocks up, q, k and v down."""
    merged = cut is Incoming.narrow_or_pad
    rows = _block_rows(scheme, parameter if merged else None)
    ranks = linear.output_size // linear.output_size_per_partition
    offset = placed = 0
    for size, own in zip(linear.stored_sizes, linear.output_partition_sizes, strict=True):
        blocks = -(-size // rows) if merged else size // rows
        part = tensor.narrow(axis, offset, blocks)
        length, start = (blocks // ranks, offset // ranks) if merged else (own // rows, placed // rows)
        _same(_narrowed(parameter, axis, start, length), cut(part, axis, 0, length))
        offset += blocks
        placed += own


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
    tensor: Incoming,
    index: int,
    cut: Cut,
) -> None:
    at = parameter.placement
    if (scheme.loader == "v2" and at.kind is Kind.TENSOR_SCALE) or (
        scheme.loader == "v1" and at.scalar_per_shard
    ):
        _tensor_scale(parameter, tensor, index)
        return
    if at.output_dim is None or (scheme.loader == "v2" and at.kind not in COLUMN_KINDS):
        _same(parameter.shape, tensor)
        return
    size = linear.output_partition_sizes[index]
    offset = sum(linear.output_partition_sizes[:index])
    if scheme.loader == "v2" and at.kind is Kind.BLOCK_SCALE:
        rows = _block_rows(scheme, parameter)
        size, offset = -(-size // rows), -(-offset // rows)
    length, start = _packed(at, size, offset)
    _same(_narrowed(parameter, at.output_dim, start, length), cut(tensor, at.output_dim, 0, length))


def _tensor_scale(parameter: Parameter, tensor: Incoming, index: int) -> None:
    """One scalar, that at `index`, of a parameter that holds one for each fused matrix."""
    if index >= parameter.shape[0]:
        raise Refused(f"index {index} is out of bounds for {parameter.name} of size {parameter.shape[0]}")
    _same(parameter.shape[1:], tensor.scalar())


def _packed(at: Placement, size: int, offset: int) -> tuple[int, int]:
    """Size and offset of a shard in stored numbers, where it is packed along the output."""
    if at.packed_dim is None or at.packed_dim != at.output_dim:
        return size, offset
    return round(size // at.packed_factor), round(offset // at.packed_factor)


def _narrowed(parameter: Parameter, axis: int, start: int, length: int) -> Shape:
    return Incoming(parameter.shape, parameter.dtype).narrow(axis, start, length).shape


LINEAR_LOADERS: Final[Mapping[str, Callable[[Linear, Scheme, Parameter, Incoming, Shard | None], None]]] = {
    "ReplicatedLinear": _replicated,
    "ColumnParallelLinear": _column,
    "MergedColumnParallelLinear": _merged_column,
    "QKVParallelLinear": _qkv,
    "RowParallelLinear": _row,
}


# Everything else


def _default(parameter: Parameter, tensor: Incoming) -> None:
    if math.prod(parameter.shape) == 1 and math.prod(tensor.shape) == 1:
        return
    _same(parameter.shape, tensor)


def _exact(parameter: Parameter, tensor: Incoming) -> None:
    _same(parameter.shape, tensor)


def _sharded(parameter: Parameter, tensor: Incoming) -> None:
    _default(parameter, tensor.narrow(0, 0, parameter.shape[0]))


def _vocabulary(parameter: Parameter, tensor: Incoming) -> None:
    tokens = parameter.placement.tokens
    if not tensor.shape or tensor.shape[0] != tokens:
        raise Refused(f"the vocabulary has {tokens} tokens, the tensor's shape is {list(tensor.shape)}")
    taken = tensor.narrow(0, 0, min(tokens, parameter.shape[0])).shape
    _broadcast(taken, (taken[0], *parameter.shape[1:]))


def _broadcast(shape: Shape, target: Shape) -> None:
    trailing = target[len(target) - len(shape) :] if len(shape) <= len(target) else ()
    if len(trailing) != len(shape) or any(a not in (1, b) for a, b in zip(shape, trailing, strict=True)):
        raise Refused(f"a copy of the shape {list(shape)} does not fit {list(target)}")


OTHER_LOADERS: Final[Mapping[Kind, Callable[[Parameter, Incoming], None]]] = {
    Kind.PLAIN: _default,
    Kind.EXACT: _exact,
    Kind.SHARDED: _sharded,
    Kind.VOCABULARY: _vocabulary,
}
