"""What the real SGLang computes with a linear, and reads for it, is what the unpacked one does."""

from typing import Any

import pytest
from unpack.layers import Stored

pytestmark = pytest.mark.warmup
pytest.importorskip("torch")
pytest.importorskip("compressed_tensors")
pytest.importorskip("safetensors")

from unpack.record import RECORDS, Record  # noqa: E402

from dflash_audit.warmup.unpack import SCHEMES, unpack  # noqa: E402

ON_NEWER_CARDS = {"CompressedTensorsW4A4Fp4"}
ROUNDED = 5e-3
"""A relative distance that the rounding of weights, inputs and sums to bfloat16 explains."""


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
