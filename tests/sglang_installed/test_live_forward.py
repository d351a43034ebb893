"""The real draft's forward on a CPU: what it agrees with, and what poison does to it."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.sglang,
    pytest.mark.warmup,
    pytest.mark.skipif(find_spec("sglang") is None, reason="SGLang is not installed"),
]

ROOT = Path(__file__).parents[2]
STAGES = ["build", "load", "context", "layer 0", "layer 1", "norm", "candidates", "selector"]


def live(draft: str, engine: str) -> dict[str, Any]:
    command = [sys.executable, str(Path(__file__).with_name("run_live.py"))]
    done = subprocess.run(
        [*command, str(ROOT / "fixtures" / draft), engine],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("SAID ")]
    assert lines, done.stderr[-3000:]
    said: dict[str, Any] = json.loads(lines[0].removeprefix("SAID "))
    return said


@pytest.fixture(scope="module")
def dense() -> dict[str, Any]:
    return live("seed-bf16", "sglang-0.5.23")


def mean_cosine(one: list[Any], other: list[Any]) -> float:
    torch = pytest.importorskip("torch")
    mean = torch.nn.functional.cosine_similarity(torch.tensor(one), torch.tensor(other), dim=-1).mean()
    return float(mean)


def test_the_reference_computes_what_sglang_computes(dense: dict[str, Any]) -> None:
    assert dense["stages"] == STAGES
    assert dense["sources"] == [] and dense["finite"]
    assert mean_cosine(dense["hidden"], dense["reference"]) >= 0.999
    assert dense["same_tokens"]


def test_a_quantized_draft_that_is_loaded_whole_is_near_the_original(dense: dict[str, Any]) -> None:
    quantized = live("seed-w8a16", "sglang-next")
    assert quantized["sources"] == []
    assert mean_cosine(quantized["hidden"], dense["hidden"]) >= 0.99


def test_what_the_release_does_not_fill_poisons_it() -> None:
    assert live("seed-w8a16", "sglang-0.5.23")["sources"] == [
        "fc",
        "layers.0.self_attn.qkv_proj",
        "layers.1.self_attn.qkv_proj",
    ]
