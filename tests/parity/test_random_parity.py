"""Random drafts against the engines: a small sample of what `scripts/random_parity.py` does at night."""

import json
import random
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from report_schema import valid

DENSE = Path(__file__).parents[2] / "fixtures" / "cases" / "dense-dflash1"
SCRIPTS = Path(__file__).parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))

from against_engine.asked import Engines  # noqa: E402
from against_engine.shrink import shrunk, size  # noqa: E402
from against_engine.vllm_target import fitting_config  # noqa: E402
from random_cases import make, make_for_vllm, write  # noqa: E402
from random_drafts.case import Case, Sizes  # noqa: E402
from random_parity import compare, report_on  # noqa: E402

from dflash_audit.engines import ENGINES  # noqa: E402

VLLM = getattr(find_spec("vllm"), "origin", None) is not None
"""Whether it is installed: the folder of the tests of its profile has no origin."""


@pytest.mark.parametrize("number", range(60))
def test_the_audit_has_a_verdict_on_every_random_draft(number: int, tmp_path: Path) -> None:
    _, case = make(7, number)
    write(tmp_path / "case", case)
    asked: Any = SimpleNamespace(names=tuple(ENGINES), capability=90)
    report = valid(report_on(tmp_path / "case", tmp_path / "draft", asked))
    assert [engine["name"] for engine in report["engines"]] == [*ENGINES]
    assert {engine["verdict"] for engine in report["engines"]} <= {"pass", "warn", "fail", "skipped"}


@pytest.mark.parametrize("number", range(40))
def test_the_audit_has_a_verdict_on_every_random_draft_for_vllm(number: int, tmp_path: Path) -> None:
    _, case = make_for_vllm(7, number)
    write(tmp_path / "case", case)
    asked: Any = SimpleNamespace(names=("vllm-0.33.0",), capability=90)
    report = valid(report_on(tmp_path / "case", tmp_path / "draft", asked))
    (engine,) = report["engines"]
    assert engine["verdict"] in ("pass", "warn", "fail", "skipped")


def test_a_random_draft_for_vllm_is_asked_for_by_the_depth_of_its_target(tmp_path: Path) -> None:
    case = draft()
    case.config = json.loads((DENSE / "config.json").read_text())
    case.tensors = json.loads((DENSE / "tensors.json").read_text())
    case.options, case.shards, case.files = [], {}, {"target.json": {"num_hidden_layers": 61}}
    write(tmp_path / "case", case)
    asked: Any = SimpleNamespace(names=("vllm-0.33.0",), capability=90)
    (engine,) = report_on(tmp_path / "case", tmp_path / "draft", asked)["engines"]
    prefixes = {p["prefix"] for p in engine["parameters"] if p["name"].endswith("o_proj.weight")}
    assert prefixes == {f"model.layers.{61 + layer}.self_attn.o_proj" for layer in range(2)}


def test_a_target_is_made_to_fit_the_draft_and_its_ranks() -> None:
    draft = {"hidden_size": 384, "dflash_config": {"num_target_layers": 36}, "vocab_size": "many"}
    config = fitting_config(draft, {"vocab_size": 1000}, ranks=8)
    sizes = ("hidden_size", "num_hidden_layers", "vocab_size")
    assert [config[key] for key in sizes] == [384, 36, 1000]
    assert not config["num_attention_heads"] % 8 and not config["num_key_value_heads"] % 8


def test_the_same_seed_and_number_make_the_same_draft() -> None:
    (kind, one), (again, other) = make(7, 3), make(7, 3)
    assert (kind, one.config, one.tensors, one.shards) == (again, other.config, other.tensors, other.shards)
    assert make(8, 3)[1].config != one.config


def draft() -> Case:
    config = {"a": {"wanted": 1, "other": [1, 2, 3]}, "b": 2}
    tensors: dict[str, tuple[str, list[int]]] = {f"t{n}": ("F32", [n]) for n in range(40)}
    shards = {"one.safetensors": [*tensors][:20], "two.safetensors": [*tensors][20:]}
    return Case(
        random.Random(0), Sizes(1, 1, 1, 1, 1, 1, 1, 1), config, tensors,
        {"file.json": {"x": 1}}, ["--tp", "2", "--quantization", "fp8"], shards,
    )  # fmt: skip


def test_a_case_is_shrunk_to_what_it_is_about() -> None:
    def holds(case: Case) -> bool:
        return "t17" in case.tensors and "wanted" in case.config.get("a", {}) and "--tp" in case.options

    small = shrunk(draft(), holds)
    assert [*small.tensors] == ["t17"]
    assert small.config == {"a": {"wanted": 1}}
    assert (small.files, small.options, small.shards) == ({}, ["--tp", "2"], {})
    assert size(small) < size(draft())


def test_a_case_of_which_nothing_may_go_stays() -> None:
    whole = draft()
    small = shrunk(whole, lambda case: case.tensors == whole.tensors and case.config == whole.config)
    assert (small.tensors, small.config) == (whole.tensors, whole.config)


@pytest.mark.skipif(not VLLM, reason="vLLM is not installed")
def test_the_installed_vllm_agrees_on_a_sample(tmp_path: Path) -> None:
    with Engines(sys.executable, 90, "vllm") as engines:
        for number in range(20):
            _, case = make_for_vllm(7, number)
            assert compare(engines, case, tmp_path).differences == []


@pytest.mark.sglang
@pytest.mark.skipif(find_spec("sglang") is None, reason="SGLang is not installed")
def test_the_installed_engine_agrees_on_a_sample(tmp_path: Path) -> None:
    with Engines(sys.executable, 90) as engines:
        for number in range(40):
            _, case = make(7, number)
            assert compare(engines, case, tmp_path).differences == []
