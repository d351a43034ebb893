"""The header reader, beside the real package: an input is a safetensors file.

After a first byte of 0 it is the file as it is. After any other it is the header alone, which gets its
length before it and so many bytes of data, less one, behind.
"""

from safetensors import SafetensorError, deserialize

from dflash_audit.errors import Unreadable
from dflash_audit.sources.safetensors_header import PREFIX, header_length, parse_header


def check(data: bytes) -> None:
    """Refused in one printable line, or read as safetensors itself reads it; both or neither refuse."""
    kind, data = data[:1], data[1:]
    if kind > b"\0":
        data = len(data).to_bytes(PREFIX, "little") + data + bytes(kind[0] - 1)
    try:
        length = header_length(data[:PREFIX], len(data), "f")
        ours = parse_header(data[PREFIX : PREFIX + length], len(data), "f").layout
    except Unreadable as refused:
        assert refused.kind == "malformed-header"
        assert refused.message.isprintable()
        ours = None
    try:
        theirs = {name: (found["dtype"], tuple(found["shape"])) for name, found in deserialize(data)}
    except SafetensorError:
        theirs = None
    assert ours == theirs
