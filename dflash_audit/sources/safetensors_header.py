"""The header of a safetensors file, read as strictly as the engines read it.

A file is the length of its header (8 bytes, little-endian), the header (JSON)
and the data. This parser refuses what the Rust parser of safetensors 0.8.0
refuses, and nothing else: an engine opens exactly the files that it accepts.
So a tensor named twice is taken (the last one counts), a field named twice is
not, and the JSON is what `serde_json` takes.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from itertools import accumulate
from typing import Any, Final, NamedTuple, Never

from dflash_audit.dtypes import BITS
from dflash_audit.errors import LFS_POINTER, Unreadable

PREFIX: Final = 8
"""Bytes in front of the header, which hold its length."""

MAX_HEADER: Final = 100_000_000
"""Longest header in bytes. Source: safetensors 0.8.0 `tensor.rs`, `MAX_HEADER_SIZE`."""

MAX_NESTING: Final = 127
"""Deepest JSON. Source: serde_json 1, which stops at 128 open brackets."""

USIZE: Final = 2**64
"""The first number that a size, an offset or a product of sizes cannot be."""

FIELDS: Final = ("dtype", "shape", "data_offsets")
"""The fields of a tensor, in the order in which a list of three gives them."""

FIELD_NAMES: Final = frozenset(FIELDS)

Layout = Mapping[str, tuple[str, tuple[int, ...]]]
"""Tensor name -> (dtype as the header spells it, shape), sorted by name."""


class Header(NamedTuple):
    """What a header says: its tensors, and the names that it gives more than once (the last one counts)."""

    layout: Layout
    repeated: tuple[str, ...]


_STRING: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"')
_ESCAPE: Final = re.compile(r"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F])|.)")
_BRACKET: Final = re.compile(r"[][{}]")


class _Object(tuple[tuple[str, Any], ...]):
    """A JSON object as its pairs, so that a key given twice is seen twice."""


class _Malformed(Exception):
    """What is wrong with a header, in a few words."""


def header_length(start: bytes, file_size: int, file: str) -> int:
    """Read the length of the header, in bytes, off the first 8 bytes of a file.

    Raises `Unreadable` (malformed-header) where no header of that length can be
    in a file of `file_size` bytes.
    """
    reason = None
    length = int.from_bytes(start[:PREFIX], "little")
    if start.startswith(b"version "):
        reason = LFS_POINTER
    elif len(start) < PREFIX or file_size < PREFIX:
        reason = f"{file_size} bytes are too few for a safetensors file"
    elif length > MAX_HEADER:
        reason = f"a header of {length} bytes where {MAX_HEADER} are the most (not safetensors?)"
    elif PREFIX + length > file_size:
        reason = f"a header of {length} bytes in a file of {file_size} (cut short?)"
    if reason:
        raise Unreadable("malformed-header", file, reason)
    return length


def parse_header(header: bytes, file_size: int, file: str) -> Header:
    """Parse the JSON of a header, without the 8 bytes of its length.

    Raises `Unreadable` (malformed-header) where safetensors would not open the file.
    """
    try:
        parsed = _json(header)
        tensors = _tensors(parsed)
        repeated = tuple(name for name, times in Counter(name for name, _ in parsed).items() if times > 1)
        _check_data(tensors, file_size - PREFIX - len(header), repeated)
    except _Malformed as e:
        raise Unreadable("malformed-header", file, str(e)) from None
    return Header({name: tensors[name][:2] for name in sorted(tensors)}, repeated)


_Entry = tuple[str, tuple[int, ...], int, int]  # dtype, shape, first byte, byte past the last


def _json(header: bytes) -> Any:
    """The header as `serde_json` reads it; objects come as `_Object`."""
    try:
        text = header.decode("utf-8")
        parsed = json.loads(
            text, object_pairs_hook=_Object, parse_int=_int, parse_float=_float, parse_constant=_constant
        )
    except UnicodeDecodeError as e:
        raise _Malformed(f"the header is not UTF-8 (byte {e.start})") from None
    except RecursionError:
        raise _Malformed("the header is nested too deep") from None
    except ValueError as e:
        raise _Malformed(f"the header is not JSON ({e})") from None
    if any(escape[1] for escape in _ESCAPE.finditer(text)):
        raise _Malformed("the header is not JSON (half a surrogate pair in a string)")
    depth = accumulate(1 if c in "[{" else -1 for c in _BRACKET.findall(_STRING.sub("", text)))
    if max(depth, default=0) > MAX_NESTING:
        raise _Malformed("the header is nested too deep")
    return parsed


def _int(text: str) -> int | float:
    """A number that fits in 64 bits; serde_json makes a float of any other."""
    if text == "-0":
        return -0.0
    value = int(text)
    return value if -USIZE // 2 <= value < USIZE else _float(text)


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError("number out of range")
    return value


def _constant(text: str) -> Never:
    raise ValueError(f"{text} is not a JSON value")


def _tensors(header: Any) -> dict[str, _Entry]:
    if not isinstance(header, _Object):
        raise _Malformed("the header is not a JSON object")
    if sum(key == "__metadata__" for key, _ in header) > 1:
        raise _Malformed("the header gives __metadata__ twice")
    tensors = {}
    for name, value in header:
        if name == "__metadata__":
            _check_metadata(value)
        else:
            tensors[name] = _entry(name, value)
    return tensors


def _check_metadata(value: Any) -> None:
    if value is None:
        return
    if not isinstance(value, _Object) or not all(isinstance(v, str) for _, v in value):
        raise _Malformed("__metadata__ is not an object of strings")


def _entry(name: str, value: Any) -> _Entry:
    fields = _fields(name, value)
    dtype, shape, offsets = (fields[f] for f in FIELDS)
    if isinstance(dtype, _Object) and len(dtype) == 1 and dtype[0][1] is None:
        dtype = dtype[0][0]  # serde's other spelling of a word: {"F32": null}
    if not isinstance(dtype, str) or dtype not in BITS:
        raise _Malformed(f"tensor {_shown(name)}: dtype {_shown(dtype)} is not known")
    if not _sizes(shape):
        raise _Malformed(f"tensor {_shown(name)}: shape {_shown(shape)} is not a list of sizes")
    if not _sizes(offsets) or len(offsets) != 2:
        raise _Malformed(f"tensor {_shown(name)}: data_offsets {_shown(offsets)} are not two offsets")
    return dtype, tuple(shape), offsets[0], offsets[1]


def _fields(name: str, value: Any) -> Mapping[str, Any]:
    """The three fields of a tensor, from an object or from a list of three."""
    if isinstance(value, list) and len(value) == len(FIELDS):
        return dict(zip(FIELDS, value, strict=True))
    if not isinstance(value, _Object):
        raise _Malformed(f"tensor {_shown(name)}: {_shown(value)} is not an object")
    fields = dict(value)
    if len(value) == len(fields) and fields.keys() >= FIELD_NAMES:
        return fields
    given = [key for key, _ in value]
    for field in FIELDS:
        if given.count(field) != 1:
            raise _Malformed(f"tensor {_shown(name)}: {field} is given {given.count(field)} times")
    return fields


def _shown(value: Any) -> str:
    """A value out of a header for a message, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 200 else text[:200] + "..."


def _sizes(value: Any) -> bool:
    return isinstance(value, list) and all(type(n) is int and n >= 0 for n in value)


def _check_data(tensors: Mapping[str, _Entry], data_size: int, repeated: tuple[str, ...]) -> None:
    """Check that the tensors cover the data without a gap or an overlap, each by its size.

    Of a name in `repeated` only the last entry is seen, so its other range is a gap.
    """
    twice = f", and tensor {_shown(repeated[0])} is given twice" if repeated else ""
    position = 0
    for name, (dtype, shape, begin, end) in sorted(tensors.items(), key=lambda item: item[1][2:]):
        if begin != position or end < begin:
            raise _Malformed(
                f"tensor {_shown(name)}: data_offsets [{begin}, {end}] leave a gap or overlap{twice}"
            )
        bits = _bits(name, dtype, shape)
        if bits % 8:
            raise _Malformed(f"tensor {_shown(name)}: {bits} bits are no whole bytes")
        if bits // 8 != end - begin:
            raise _Malformed(
                f"tensor {_shown(name)}: {dtype} {_shown(list(shape))} takes {bits // 8} bytes,"
                f" data_offsets [{begin}, {end}] give {end - begin}"
            )
        position = end
    if position != data_size:
        raise _Malformed(
            f"{data_size} bytes of data where the header describes {position} (cut short?){twice}"
        )


def _bits(name: str, dtype: str, shape: tuple[int, ...]) -> int:
    bits = 1
    for factor in (*shape, BITS[dtype]):
        bits *= factor
        if bits >= USIZE:  # also where a later size is 0: the product is checked step by step
            raise _Malformed(f"tensor {_shown(name)}: the size of {dtype} {_shown(list(shape))} overflows")
    return bits
