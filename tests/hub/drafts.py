"""Drafts as the files of a repo."""

import json
from pathlib import Path
from typing import Any

from materialize import write_zeros
from report_schema import valid

from dflash_audit.auditing import Request, audit
from dflash_audit.formats.json_report import document

CASE = Path(__file__).parents[2] / "fixtures" / "cases" / "dense-dflash2"

INDEX = "model.safetensors.index.json"

Layout = dict[str, tuple[str, list[int]]]


def layout() -> Layout:
    """The tensors of a small dense draft: name -> (dtype, shape)."""
    tensors: Layout = json.loads((CASE / "tensors.json").read_text())
    return tensors


def config() -> bytes:
    return (CASE / "config.json").read_bytes()


def weights(tensors: Layout, scratch: Path) -> bytes:
    """A safetensors file of zeros."""
    path = scratch / "weights"
    write_zeros(path, tensors)
    return path.read_bytes()


def single(scratch: Path) -> dict[str, bytes]:
    """The draft in one file."""
    return {"config.json": config(), "model.safetensors": weights(layout(), scratch)}


def sharded(count: int, scratch: Path) -> dict[str, bytes]:
    """The draft in `count` files and an index, beside files that an audit has no use for."""
    names = [f"model-{i:05}-of-{count:05}.safetensors" for i in range(1, count + 1)]
    parts: dict[str, Layout] = {name: {} for name in names}
    for position, (tensor, info) in enumerate(layout().items()):
        parts[names[position % count]][tensor] = info
    index = {"weight_map": {tensor: name for name, part in parts.items() for tensor in part}}
    return {
        "config.json": config(),
        INDEX: json.dumps(index).encode(),
        **{name: weights(part, scratch) for name, part in parts.items()},
        "README.md": b"a draft",
        "generation_config.json": b"not JSON",
        "onnx/config.json": b"not JSON either",
    }


def write(files: dict[str, bytes], folder: Path) -> Path:
    """The same files in a folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def report(source: str | Path, revision: str | None = None) -> dict[str, Any]:
    """The JSON report of an audit."""
    return valid(document(audit(Request(str(source), revision=revision))))
