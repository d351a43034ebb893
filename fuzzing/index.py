"""The index reader: an input is a `model.safetensors.index.json` beside two weight files and a folder."""

import posixpath

from dflash_audit.errors import Unreadable
from dflash_audit.sources.reading import read_folder
from dflash_audit.sources.weight_files import INDEX
from fuzzing.folder import MemoryFolder

CONFIG = b'{"architectures": ["DFlashDraftModel"], "model_type": "qwen3"}'
TENSOR = b'{"%s":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'


def _weights(name: bytes) -> bytes:
    header = TENSOR % name
    return len(header).to_bytes(8, "little") + header + bytes(4)


BESIDE = {
    "config.json": CONFIG,
    "model-1.safetensors": _weights(b"a"),
    "model-2.safetensors": _weights(b"b"),
    "sub/model-3.safetensors": _weights(b"c"),
}


def check(data: bytes) -> None:
    """Refused in one printable line, or read without a look outside the folder."""
    folder = MemoryFolder({**BESIDE, INDEX: data})
    try:
        checkpoint = read_folder(folder)
    except Unreadable as refused:
        assert refused.message.isprintable()
    else:
        assert {file.name for file in checkpoint.files} <= BESIDE.keys()
        assert all(remark.message for remark in checkpoint.remarks)
    for path in folder.asked:
        assert not posixpath.isabs(path)
        assert ".." not in path.split("/") or not posixpath.normpath(path).startswith("..")
        assert "\0" not in path
