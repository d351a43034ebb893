"""The header parser accepts what the real safetensors package accepts, and nothing else."""

import json
import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors import SafetensorError, deserialize

from dflash_audit.dtypes import BITS
from dflash_audit.errors import Unreadable
from dflash_audit.sources.safetensors_header import MAX_HEADER, Layout, header_length, parse_header

INFO = b'"dtype":"F32","shape":[1],"data_offsets":[0,4]'


def encode(header: bytes, data: bytes = b"") -> bytes:
    return len(header).to_bytes(8, "little") + header + data


def parse(content: bytes) -> Layout:
    length = header_length(content[:8], len(content), "f")
    return parse_header(content[8 : 8 + length], len(content), "f").layout


def both(content: bytes) -> tuple[Layout | None, Layout | None]:
    """What this parser and the real one make of a file, None where they refuse it."""
    try:
        ours = parse(content)
    except Unreadable as e:
        assert (e.kind, e.message[:3], "\n" in e.message) == ("malformed-header", "f: ", False)
        ours = None
    try:
        theirs = {name: (t["dtype"], tuple(t["shape"])) for name, t in deserialize(content)}
    except SafetensorError:
        theirs = None
    return ours, theirs


def info(fields: str, value: str = "") -> bytes:
    """A header of one tensor `a` with 4 bytes of data: some of its fields replaced, or one added."""
    known = {"dtype": '"F32"', "shape": "[1]", "data_offsets": "[0,4]"}
    return ('{"a":{' + ",".join(f'"{k}":{v}' for k, v in (known | {fields: value}).items()) + "}}").encode()


ACCEPTED = {
    "no tensors": b"{}",
    "space around": b" \t\r\n{} \n",
    "metadata null": b'{"__metadata__":null}',
    "metadata key twice": b'{"__metadata__":{"a":"b","a":"c"}}',
    "extra field": info("x", '{"y":[1.5,null]}'),
    "extra field tiny": info("x", "1e-999"),
    "extra field of 300 digits": info("x", "9" * 300),
    "extra field deep": info("x", "[" * 125 + "]" * 125),
    "surrogate pair": info("x", '"\\ud83d\\ude00"'),
    "escaped backslash before u": info("x", '"\\\\ud800"'),
    "brackets in a string": info("x", '"' + "[" * 500 + '"'),
    "fields as a list": b'{"a":["F32",[1],[0,4]]}',
    "dtype as a map": info("dtype", '{"F32":null}'),
    "name empty": b'{"":{' + INFO + b"}}",
    "name with a newline": b'{"a\\nb":{' + INFO + b"}}",
    "name twice, the last counts": b'{"a":{"dtype":"I64","shape":[9],"data_offsets":[7,3]},"a":{'
    + INFO
    + b"}}",
    "scalar": info("shape", "[]"),
    "size zero beside": b'{"a":{' + INFO + b'},"b":{"dtype":"F4","shape":[3,0],"data_offsets":[0,0]}}',
}

REFUSED = {
    "empty": b"",
    "not an object": b"[]",
    "null": b"null",
    "not JSON": b"{",
    "trailing comma": b"{},",
    "padded with NUL": b"{}\0",
    "byte order mark": b"\xef\xbb\xbf{}",
    "not UTF-8": b'{"\xff":{' + INFO + b"}}",
    "half a surrogate pair": info("x", '"\\ud83d"'),
    "the other half": info("x", '"\\ude00"'),
    "control character": info("x", '"\x01"'),
    "NaN": info("x", "NaN"),
    "number out of range": info("x", "1e999"),
    "number of 400 digits": info("x", "9" * 400),
    "number of 5000 digits": info("x", "9" * 5000),
    "too deep": info("x", "[" * 126 + "]" * 126),
    "much too deep": info("x", "[" * 100_000 + "]" * 100_000),
    "metadata a list": b'{"__metadata__":[]}',
    "metadata value a number": b'{"__metadata__":{"a":1}}',
    "metadata twice": b'{"__metadata__":{},"__metadata__":{}}',
    "tensor null": b'{"a":null}',
    "tensor a list of four": b'{"a":["F32",[1],[0,4],5]}',
    "field twice": b'{"a":{"dtype":"F32",' + INFO + b"}}",
    "field missing": b'{"a":{"dtype":"F32","shape":[1]}}',
    "dtype unknown": info("dtype", '"F128"'),
    "dtype in lower case": info("dtype", '"f32"'),
    "dtype a number": info("dtype", "1"),
    "dtype a map of something": info("dtype", '{"F32":1}'),
    "shape null": info("shape", "null"),
    "shape negative": info("shape", "[-1]"),
    "shape minus zero": info("shape", "[1,-0]"),
    "shape a float": info("shape", "[1.0]"),
    "shape a boolean": info("shape", "[true]"),
    "shape beyond 64 bits": info("shape", "[18446744073709551616]"),
    "size overflows before the zero": info("shape", "[1099511627776,1099511627776,0]"),
    "three offsets": info("data_offsets", "[0,4,4]"),
    "offsets a string": info("data_offsets", '"04"'),
    "offsets reversed": info("data_offsets", "[4,0]"),
    "offsets not at the start": info("data_offsets", "[1,5]"),
    "offsets against the shape": info("shape", "[2]"),
    "not on a whole byte": info("dtype", '"F4"'),
    "overlap": b'{"a":{' + INFO + b'},"b":{' + INFO + b"}}",
    "first of a name malformed": b'{"a":1,"a":{' + INFO + b"}}",
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_accepted(case: str) -> None:
    header = ACCEPTED[case]
    ours, theirs = both(encode(header, bytes(4) if b"[0,4]" in header else b""))
    assert ours is not None
    assert ours == theirs


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    header = REFUSED[case]
    assert both(encode(header, bytes(4) if b"[0,4]" in header else b"")) == (None, None)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"1234567",
        bytes(8),
        (3).to_bytes(8, "little") + b"{}",
        (MAX_HEADER + 1).to_bytes(8, "little") + b"{}",
        encode(info("shape", "[1]"), bytes(3)),
        encode(info("shape", "[1]"), bytes(5)),
        b"version https://git-lfs.example/spec/v1\noid sha256:0\nsize 1\n",
    ],
)
def test_lengths_refused(content: bytes) -> None:
    assert both(content) == (None, None)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"version ", "f: a Git LFS pointer, not the file that it stands for (`git lfs pull` fetches that)"),
        (b"{}", "f: 2 bytes are too few for a safetensors file"),
        (encode(b"{}")[:-1], "f: a header of 2 bytes in a file of 9 (cut short?)"),
        (encode(b"{"), "f: the header is not JSON (Expecting property name enclosed in double quotes"),
        (encode(info("dtype", '"F128"'), bytes(4)), "f: tensor 'a': dtype 'F128' is not known"),
        (encode(info("shape", "[2]"), bytes(4)), "f: tensor 'a': F32 [2] takes 8 bytes, data_offsets [0, 4]"),
        (encode(info("shape", "[1]"), bytes(3)), "f: 3 bytes of data where the header describes 4"),
    ],
)
def test_reason(content: bytes, reason: str) -> None:
    with pytest.raises(Unreadable) as raised:
        parse(content)
    assert raised.value.message.startswith(reason)


@given(
    st.dictionaries(
        st.text(),
        st.tuples(st.sampled_from(sorted(BITS)), st.lists(st.integers(0, 9), max_size=4)),
        max_size=8,
    )
)
def test_round_trip(tensors: dict[str, tuple[str, list[int]]]) -> None:
    header, end = {}, 0
    tensors.pop("__metadata__", None)
    for name, (dtype, shape) in tensors.items():
        shape = [*shape, 8]  # whole bytes, whatever the dtype
        begin, end = end, end + BITS[dtype] * _product(shape) // 8
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}
    ours, theirs = both(encode(json.dumps(header).encode(), bytes(end)))
    assert ours == theirs == {n: (t["dtype"], tuple(t["shape"])) for n, t in header.items()}
    assert list(ours) == sorted(header)


def _product(shape: list[int]) -> int:
    product = 1
    for size in shape:
        product *= size
    return product


@given(st.binary(max_size=200))
def test_random_bytes(content: bytes) -> None:
    both(content)
    both(encode(content))


HEADER = (
    b'{"__metadata__":{"format":"pt"},"a.b":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8],"x":[1,{"y":2.5}]},'
    b'"c":{"dtype":"F4","shape":[4],"data_offsets":[8,10]},"d":["I64",[],[10,18]]}'
)
WORDS = [
    *(b'"a.b" "c" "dtype" "shape" "data_offsets" "__metadata__" "F32" "F4" "BF16" {"F32":null}'.split()),
    *(b"{ } [ ] , : 0 8 10 -0 -1 1e5 1.0 18446744073709551616 1e400 null true NaN +1 01 .5 5. -".split()),
    *(b'\\u0061 \\ud83d\\ude00 \\ud83d \\\\ \\/ \\x \xff \xc3\xa9 " \x00 \x1f \x7f'.split()),
    b" ",
]


def test_edited_headers() -> None:
    """Headers a few edits away from a good one: the same verdict and the same tensors as the real parser."""
    rng = random.Random(0)
    words = re.findall(rb'"[^"]*"|[\d.]+|[^\w"]|\w+', HEADER)
    accepted = 0
    for _ in range(5000):
        edited = list(words)
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            at = rng.randrange(len(edited))
            edited[at : at + rng.choice([0, 1])] = rng.choice([[], [rng.choice(WORDS)], words[at : at + 8]])
        ours, theirs = both(encode(b"".join(edited), bytes(18)))
        assert ours == theirs, edited
        accepted += ours is not None
    assert accepted > 100
