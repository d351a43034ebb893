"""The header reader: an input is a whole safetensors file, and the real package is asked as well."""

from safetensors import SafetensorError, deserialize

from dflash_audit.errors import Unreadable
from dflash_audit.sources.safetensors_header import PREFIX, header_length, parse_header


def check(data: bytes) -> None:
    """Refused in one printable line, or read as safetensors itself reads it; both or neither refuse."""
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
