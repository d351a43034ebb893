"""Writes a recorded case out as a checkpoint that an engine can open.

A case folder holds `config.json` (and `hf_quant_config.json` where the
checkpoint has one), `tensors.json` (name -> [dtype, shape], dtypes as a
safetensors header spells them), `expected.json` (what the engines did) and
`args.json` where the server gets other options than its defaults. Where vLLM gets
another target than one made to fit, `target.json` has the config that it differs in. Where the
weights lie in several files, `files.json` says which hold what (file name -> names
of tensors). A `.pt` file lies beside the weights. The tensors come out as zeros, for most of what the cases
are about is layout; `real_values` writes them with numbers.
"""

import json
import math
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dflash_audit.dtypes import BITS

NOT_THE_CHECKPOINTS = frozenset(
    {"tensors.json", "files.json", "expected.json", "args.json", "target.json", "rule.json", "warmup.json"}
)


def materialize(case: Path, target: Path) -> Path:
    """Write the checkpoint of the case folder `case` into the folder `target`, and return it."""
    copy_beside(case, target)
    tensors = json.loads((case / "tensors.json").read_text())
    for name, held in files_of(case, tensors).items():
        write_zeros(target / name, {tensor: tensors[tensor] for tensor in held})
    return target


def files_of(case: Path, tensors: Iterable[str]) -> dict[str, list[str]]:
    """The weight files of a case, and the tensors that each holds."""
    shards = case / "files.json"
    found: dict[str, list[str]] = json.loads(shards.read_text()) if shards.exists() else {}
    return found or {"model.safetensors": [*tensors]}


def copy_beside(case: Path, target: Path) -> None:
    """Copy what a checkpoint has beside its weights."""
    target.mkdir(parents=True, exist_ok=True)
    for path in (*case.glob("*.json"), *case.glob("*.pt")):
        if path.name not in NOT_THE_CHECKPOINTS:
            shutil.copy(path, target)


def write_zeros(path: Path, tensors: Mapping[str, tuple[str, list[int]]]) -> None:
    """Write a safetensors file of zeros; its data takes no room on most file systems."""
    header, end = encoded_header(tensors)
    with open(path, "wb") as file:
        file.write(header)
        file.truncate(file.tell() + end)


def encoded_header(tensors: Mapping[str, tuple[str, list[int]]]) -> tuple[bytes, int]:
    """What stands before the data in a safetensors file, and how many bytes of data follow."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, (dtype, shape) in tensors.items():
        begin, end = end, end + math.prod(shape) * BITS[dtype] // 8
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}
    encoded = json.dumps(header, separators=(",", ":")).encode()
    return len(encoded).to_bytes(8, "little") + encoded, end
