"""What a weight loader copies where, told on shapes and dtypes alone: what all engines share."""

import math
from collections.abc import Mapping
from typing import Final, NamedTuple

from dflash_audit.dtypes import TORCH
from dflash_audit.loadplan import Box, Copy, Shard, whole_of
from dflash_audit.once import once
from dflash_audit.refusal import Refused
from dflash_audit.sources.checkpoint import Tensor
from dflash_audit.sources.tensors import Tensors
from dflash_audit.tree import Kind, Parameter

Shape = tuple[int, ...]
Copies = tuple[Copy, ...]

NEVER_COPIED: Final = frozenset(("float4_e2m1fn_x2",))
"""Dtypes that torch 2.14 copies into no other."""


QKV: Final[Mapping[Shard, int]] = {"q": 0, "k": 1, "v": 2}

COLUMN_KINDS: Final = frozenset(
    (Kind.WEIGHT, Kind.PACKED, Kind.PACKED_COLUMN, Kind.CHANNEL_SCALE, Kind.GROUP_SCALE, Kind.BLOCK_SCALE)
)
"""Subclasses of `_ColumnvLLMParameter`, in `parameter.py` of vLLM 0.33.0 and of SGLang 0.5.23 alike."""

ROW_KINDS: Final = frozenset((Kind.ROW, Kind.WEIGHT, Kind.PACKED, Kind.GROUP_SCALE, Kind.BLOCK_SCALE))
"""Subclasses of `RowvLLMParameter`, likewise."""


class View(NamedTuple):
    """A tensor or a parameter, or a part of one, as a loader passes it on; `dtype` is torch's name.

    `box` is the part, which is less than `shape` says where zeros pad it.
    """

    shape: Shape
    dtype: str
    box: Box

    def narrow(self, axis: int, start: int, length: int) -> "View":
        """A slice along `axis`, as `torch.Tensor.narrow` takes it or refuses."""
        size = self._size(axis)
        if length < 0 or start + length > size:
            raise Refused(f"start ({start}) + length ({length}) exceeds dimension size ({size})")
        return self._cut(axis, start, length)

    def narrow_or_pad(self, axis: int, start: int, length: int) -> "View":
        """As `narrow`, but a tensor that ends too early is padded with zeros."""
        self._size(axis)
        return self._cut(axis, start, length)

    def at_least_1d(self) -> "View":
        return self if self.shape else View((1,), self.dtype, self.box)

    def one_row(self) -> "View":
        """The one number of a scale, which may come as a scalar too."""
        if self.shape and self.shape[0] != 1:
            raise Refused(f"a scale of one number is needed, got the shape {list(self.shape)}")
        return self.at_least_1d()

    def _size(self, axis: int) -> int:
        if axis >= len(self.shape):
            raise Refused(f"dimension {axis} is out of range for the shape {list(self.shape)}")
        return self.shape[axis]

    def _cut(self, axis: int, start: int, length: int) -> "View":
        begin, held = self.box[axis]
        part = (begin + start, max(0, min(held - start, length)))
        shape = (*self.shape[:axis], length, *self.shape[axis + 1 :])
        return View(shape, self.dtype, _along(self.box, axis, part))


def view(shape: Shape, dtype: str) -> View:
    """All of a tensor or a parameter."""
    return View(shape, dtype, whole_of(shape))


def _along(box: Box, axis: int, part: tuple[int, int]) -> Box:
    return (*box[:axis], part, *box[axis + 1 :])


def all_of(parameter: Parameter) -> View:
    """All of a parameter."""
    return view(parameter.shape, parameter.dtype)


def copy_whole(into: View, tensor: View) -> Copies:
    """A copy into a part of the parameter, which must have the tensor's shape."""
    if into.shape != tensor.shape:
        raise Refused(f"the parameter's shape is {list(into.shape)}, the tensor's {list(tensor.shape)}")
    for axis, (size, (_, held)) in enumerate(zip(tensor.shape, tensor.box, strict=False)):
        if held < size:
            start, _ = into.box[axis]
            padding = Copy(_along(into.box, axis, (start + held, size - held)), None)
            return (Copy(_along(into.box, axis, (start, held)), tensor.box), padding)
    return (Copy(into.box, tensor.box),)


def incoming(tensor: Tensor) -> View:
    """A tensor as torch holds it: a header counts 4-bit floats one by one, torch in pairs.

    Source: safetensors 0.8.0 `bindings/python/src/lib.rs`, `get_tensor`.
    """
    dtype = TORCH.get(tensor.dtype)
    if dtype is None:
        raise Refused(f"torch has no dtype for {tensor.dtype}")
    if tensor.dtype != "F4":
        return view(tensor.shape, dtype)
    if not tensor.shape or tensor.shape[-1] % 2:
        raise Refused(f"a tensor of 4-bit floats needs an even last dimension, got {list(tensor.shape)}")
    return view((*tensor.shape[:-1], tensor.shape[-1] // 2), dtype)


@once
def unopened(tensors: Tensors) -> Mapping[Tensor, str]:
    """The tensors that safetensors does not hand over, and why: the load dies on one."""
    found = {}
    for tensor in tensors:
        try:
            incoming(tensor)
        except Refused as refusal:
            found[tensor] = refusal.reason
    return found


def copy_scalar(parameter: Parameter, tensor: View, index: int) -> Copies:
    """One scalar, that at `index`, of a parameter that holds one for each fused matrix."""
    if index >= parameter.shape[0]:
        raise Refused(f"index {index} is out of bounds for {parameter.name} of size {parameter.shape[0]}")
    return copy_whole(all_of(parameter).narrow(0, index, 1), tensor.one_row())


def copy_plain(parameter: Parameter, tensor: View) -> Copies:
    """What `default_weight_loader` copies: one number, whatever its axes, or a tensor of the shape."""
    if math.prod(parameter.shape) == 1 and math.prod(tensor.shape) == 1:
        return (Copy(whole_of(parameter.shape), tensor.box),)
    return copy_whole(all_of(parameter), tensor)


def copy_vocabulary(parameter: Parameter, tensor: View) -> Copies:
    """A row for each token, and zeros in the rows that pad the table."""
    tokens = parameter.placement.tokens
    if not tensor.shape or tensor.shape[0] != tokens:
        raise Refused(f"the vocabulary has {tokens} tokens, the tensor's shape is {list(tensor.shape)}")
    rows, taken = parameter.shape[0], min(tokens, parameter.shape[0])
    tensor = tensor.narrow(0, 0, taken)
    _check_broadcast(tensor.shape, (taken, *parameter.shape[1:]))
    table = all_of(parameter)
    copies = (Copy(table.narrow(0, 0, taken).box, tensor.box),)
    return copies if taken == rows else (*copies, Copy(table.narrow(0, taken, rows - taken).box, None))


def _check_broadcast(shape: Shape, target: Shape) -> None:
    trailing = target[len(target) - len(shape) :] if len(shape) <= len(target) else ()
    if len(trailing) != len(shape) or any(a not in (1, b) for a, b in zip(shape, trailing, strict=True)):
        raise Refused(f"a copy of the shape {list(shape)} does not fit {list(target)}")
