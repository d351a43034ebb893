"""What the real SGLang did with one linear, as `scripts/record_unpacked.py` recorded it."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from unpack.layers import quantized

from dflash_audit.tree import Module

RECORDS = sorted((Path(__file__).parents[2] / "fixtures/unpacked/linears").glob("*.safetensors"))


class Record:
    """One file of `scripts/record_unpacked.py`."""

    def __init__(self, path: Path) -> None:
        with safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            about = {key: json.loads(value) for key, value in file.metadata().items()}
        self.stored = {name[7:]: value for name, value in tensors.items() if name.startswith("stored.")}
        self.x, self.y = tensors["x"], tensors["y"]
        self.scheme: str = about["scheme"]
        self.read: list[str] = about["read"]
        self.spread: dict[str, list[int]] = about["spread"]
        self.outputs: list[int] = about["linear"]["outputs"]
        self.module: Module = quantized(
            about["method"],
            about["config"],
            about["linear"]["module_class"],
            tuple(self.outputs),
            about["linear"]["inputs"],
            bias="bias" in self.stored,
        )

    def poisoned(self, place: str) -> dict[str, Any]:
        """What is stored with one NaN, where the record put it."""
        name, _, matrix = place.removesuffix("]").partition("[")
        value = self.stored[name].float().clone()
        first = sum(self.outputs[: int(matrix)])
        rows, total = value.shape[0], sum(self.outputs)
        if value.shape == (len(self.outputs),):
            value[int(matrix)] = torch.nan
        elif value.ndim == 2 and value.shape[1] == total and rows != total:
            value[0, first] = torch.nan
        else:
            value.view(rows, -1)[first * rows // total, 0] = torch.nan
        return self.stored | {name: value.to(self.stored[name].dtype)}
