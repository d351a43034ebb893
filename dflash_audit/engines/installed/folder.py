"""A checkpoint as a folder that the engine can open."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dflash_audit.dtypes import BITS
from dflash_audit.sources.checkpoint import CONFIG, Checkpoint, Tensor


@contextmanager
def as_folder(checkpoint: Checkpoint) -> Iterator[str]:
    """The checkpoint's own folder where it is one.

    A single file gets a folder with itself and the JSON files beside it. A repo of
    the Hub, of which the audit read the headers only, gets one with its JSON files,
    and weight files of zeros, which take no room on most file systems: what the
    load does follows from names, shapes and dtypes.
    """
    if checkpoint.kind == "local" and os.path.isdir(checkpoint.id):
        yield os.path.abspath(checkpoint.id)
        return
    with TemporaryDirectory(prefix="dflash-audit-") as scratch:
        # Some of the engine's choices hang on the folder's name.
        folder = Path(scratch, _name(checkpoint))
        folder.mkdir()
        if checkpoint.kind == "local":
            _link_file(checkpoint, folder)
        else:
            _write_layout(checkpoint, folder)
        yield str(folder)


def _name(checkpoint: Checkpoint) -> str:
    if checkpoint.kind == "local":
        return Path(checkpoint.id).resolve().parent.name or "draft"
    return checkpoint.id.rstrip("/").replace(":", "/").rpartition("/")[2]


def _link_file(checkpoint: Checkpoint, folder: Path) -> None:
    source = Path(checkpoint.id).resolve()
    beside = [path for path in source.parent.iterdir() if path.suffix == ".json" and path.is_file()]
    # An index would send the engine to the other files.
    for path in (source, *(path for path in beside if not path.name.endswith(".index.json"))):
        (folder / path.name).symlink_to(path)


def _write_layout(checkpoint: Checkpoint, folder: Path) -> None:
    (folder / CONFIG).write_text(json.dumps(checkpoint.config))
    for name in checkpoint.json_files:
        # Of the other files only those may be read that hold a quantization config.
        if name.endswith("_config.json"):
            (folder / name).write_text(json.dumps(checkpoint.json_files[name]))
    for file in checkpoint.files:
        path = folder / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_zeros(path, [tensor for tensor in checkpoint.tensors if tensor.file == file.name])


def write_zeros(path: Path, tensors: list[Tensor]) -> None:
    """A safetensors file of zeros."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for tensor in tensors:
        begin, end = end, end + tensor.numel * BITS[tensor.dtype] // 8
        header[tensor.name] = {
            "dtype": tensor.dtype,
            "shape": list(tensor.shape),
            "data_offsets": [begin, end],
        }
    encoded = json.dumps(header, separators=(",", ":")).encode()
    with open(path, "wb") as out:
        out.write(len(encoded).to_bytes(8, "little") + encoded)
        out.truncate(out.tell() + end)
