"""Recorded cases to edit: their JSON files, and the tensors that their weight file has."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from dflash_audit.sources.checkpoint import CONFIG
from dflash_audit.sources.target_files import HF_QUANT_CONFIG

FIXTURES: Final = Path(__file__).parents[1] / "fixtures"

Tensors = Mapping[str, tuple[str, Sequence[int]]]


class Case(NamedTuple):
    """A checkpoint: its JSON files as they are, and each tensor's dtype and shape."""

    files: Mapping[str, str]
    tensors: Tensors


@cache
def recorded(*groups: str) -> tuple[Case, ...]:
    """The cases of these folders of `fixtures/`, in the order of their names."""
    folders = [folder for group in groups for folder in sorted((FIXTURES / group).iterdir())]
    return tuple(map(_case, folders))


@cache
def cut(*groups: str) -> tuple[Case, ...]:
    """The same with their first layer alone, which an audit takes half the time for."""
    return tuple(map(_first_layer, recorded(*groups)))


def _case(folder: Path) -> Case:
    there = [name for name in (CONFIG, HF_QUANT_CONFIG) if (folder / name).is_file()]
    tensors = json.loads((folder / "tensors.json").read_text())
    return Case({name: (folder / name).read_text() for name in there}, tensors)


def _first_layer(case: Case) -> Case:
    files = {name: json.dumps(_one_layer(json.loads(text))) for name, text in case.files.items()}
    return Case(files, {name: told for name, told in case.tensors.items() if _layer(name) in ("", "0")})


def _layer(name: str) -> str:
    """The number of the layer that a tensor is of, empty for none."""
    parts = name.split(".")
    return parts[parts.index("layers") + 1] if "layers" in parts[:-1] else ""


def _one_layer(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    inner = {key: _one_layer(each) for key, each in value.items()}
    if isinstance(inner.get("num_hidden_layers"), int):
        inner["num_hidden_layers"] = 1
    if isinstance(inner.get("layer_types"), list):
        inner["layer_types"] = inner["layer_types"][:1]
    return inner
