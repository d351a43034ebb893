"""What the real SGLang computes with a linear, and reads for it, is what the unpacked one does."""

import json
from pathlib import Path
from typing import Any

import pytest
from unpack.layers import Stored, quantized

from dflash_audit.tree import Module

pytestmark = pytest.mark.warmup
torch = pytest.importorskip("torch")
pytest.importorskip("compressed_tensors")
safetensors = pytest.importorskip("safetensors")

from dflash_audit.warmup.unpack import SCHEMES, unpack  # noqa: E402

RECORDS = sorted((Path(__file__).parents[2] / "fixtures/unpacked/linears").glob("*.safetensors"))
ON_NEWER_CARDS = {"CompressedTensorsW4A4Fp4"}
ROUNDED = 5e-3
"""A relative distance that the rounding of weights, inputs and sums to bfloat16 explains."""


class Record:
    """One file of `scripts/record_unpacked.py`."""

    def __init__(self, path: Path) -> None:
        with safetensors.safe_open(path, "pt") as file:
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


def records() -> list[Any]:
    return [pytest.param(path, id=path.stem) for path in RECORDS]


@pytest.fixture
def record(request: pytest.FixtureRequest) -> Record:
    return Record(request.param)


@pytest.mark.parametrize("record", records(), indirect=True)
def test_computes_what_the_engine_computes(record: Record) -> None:
    assert record.module.scheme is not None
    assert record.module.scheme.name == record.scheme

    y = unpack(record.module, record.stored)(record.x)

    assert y.dtype == record.y.dtype
    distance = (y.float() - record.y.float()).norm() / record.y.float().norm()
    assert distance < ROUNDED


@pytest.mark.parametrize("record", records(), indirect=True)
def test_reads_what_the_engine_reads(record: Record) -> None:
    stored = Stored(record.stored)

    unpack(record.module, stored)(record.x)

    assert stored.read == set(record.read)


@pytest.mark.parametrize("record", records(), indirect=True)
def test_a_nan_spreads_as_in_the_engine(record: Record) -> None:
    for place, matrices in record.spread.items():
        rows = unpack(record.module, record.poisoned(place))(record.x).isnan().any(dim=0)
        reached = [i for i, part in enumerate(rows.split(record.outputs)) if part.any()]
        if place.startswith("weight[") and not matrices:
            # The engine's quantization makes its greatest number of the NaN. Poison must not end there.
            matrices = [int(place.removeprefix("weight[").removesuffix("]"))]
        assert reached == matrices, place


def test_every_scheme_of_an_h200_is_recorded() -> None:
    assert {Record(path).scheme for path in RECORDS} == set(SCHEMES) - ON_NEWER_CARDS
