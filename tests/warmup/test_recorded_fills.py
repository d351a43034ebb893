"""The memory against what the real engine's loaders leave in a draft's parameters, bit for bit.

`scripts/record_fills.py` says what a record holds.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from parity.case import FIXTURES, Case
from real_values import materialize_real
from warmup.casts import without_meaning

from dflash_audit.engines import engine
from dflash_audit.loadplan import LoadPlan
from dflash_audit.sources.disk import read_path

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.warmup

from dflash_audit.warmup.memory import Memory  # noqa: E402

DIGITS = 8

RECORDS: dict[str, dict[str, Any]] = json.loads((FIXTURES / "fills.json").read_text())


def digest(parameter: Any) -> str:
    raw = parameter.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    return hashlib.sha256(raw).hexdigest()[:DIGITS]


def held(plan: LoadPlan, folder: Path, device: str) -> dict[str, str]:
    memory = Memory(plan, folder, device)
    return {name: digest(memory.parameter(name)) for name in plan.slots}


def check(name: str, folder: Path, device: str) -> None:
    """Hold the memory of a case, written into `folder`, against both engines' records."""
    case = Case(FIXTURES / name)
    checkpoint = read_path(materialize_real(case.folder, folder))
    released: dict[str, dict[str, str]] = {}
    for named, modules in RECORDS[name].items():
        recorded = released if modules == "same" else modules
        plan = engine(named).replay(checkpoint, case.conditions).plan
        assert plan is not None and not plan.refusals
        expected = {
            f"{module}.{leaf}" if module else leaf: sha
            for module, leaves in recorded.items()
            for leaf, sha in leaves.items()
        }
        found = held(plan, folder, device)
        if device != "cpu":
            for cast in without_meaning(plan):
                del expected[cast], found[cast]
        assert found == expected, (name, named)
        released = recorded


@pytest.mark.parametrize("name", RECORDS)
def test_bit_for_bit(name: str, tmp_path: Path) -> None:
    check(name, tmp_path, "cpu")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_bit_for_bit_on_a_gpu(tmp_path: Path) -> None:
    for number, name in enumerate(RECORDS):
        check(name, tmp_path / str(number), "cuda")
