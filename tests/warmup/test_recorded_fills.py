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

from dflash_audit.engines import engine
from dflash_audit.loadplan import LoadPlan
from dflash_audit.sources.disk import read_path

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.warmup

DIGITS = 8

RECORDS: dict[str, dict[str, Any]] = json.loads((FIXTURES / "fills.json").read_text())


def digest(parameter: Any) -> str:
    raw = parameter.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    return hashlib.sha256(raw).hexdigest()[:DIGITS]


def held(plan: LoadPlan, folder: Path) -> dict[str, str]:
    from dflash_audit.warmup.memory import Memory

    memory = Memory(plan, folder, "cpu")
    return {name: digest(memory.parameter(name)) for name in plan.slots}


@pytest.mark.parametrize("name", RECORDS)
def test_bit_for_bit(name: str, tmp_path: Path) -> None:
    case = Case(FIXTURES / name)
    checkpoint = read_path(materialize_real(case.folder, tmp_path))
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
        assert held(plan, tmp_path) == expected, named
        released = recorded
