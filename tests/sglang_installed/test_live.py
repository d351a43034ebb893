"""The installed SGLang itself: run by a Python that holds sglang, pytest and the audit."""

from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest
from materialize import materialize
from test_cli import report, run

pytestmark = [
    pytest.mark.sglang,
    pytest.mark.skipif(find_spec("sglang") is None, reason="SGLang is not installed"),
]

FIXTURES = Path(__file__).parents[2] / "fixtures"
LIVE = "sglang@installed"


def test_it_agrees_with_its_profile_on_every_recorded_case() -> None:
    folders = [str(FIXTURES / name) for name in ("cases", "fuzz", "random", "regressions", "rules")]
    done = run("selfcheck", *folders)
    assert done.returncode == 0, done.stdout


def test_it_differs_from_another_profile() -> None:
    done = run("selfcheck", str(FIXTURES / "seed-w8a16"), "--engine", "sglang-next")
    assert done.returncode == 1
    assert "'qkv_proj'" in done.stdout
    assert "agree on 0 of 1 drafts" in done.stdout


def test_an_audit_by_it_fills_the_same_report() -> None:
    said = report(str(FIXTURES / "seed-w8a16"), "--engine", LIVE)
    entries = {engine["name"]: engine for engine in said["engines"]}
    assert list(entries) == ["sglang-0.5.23", "sglang-next", LIVE]
    live = entries[LIVE]
    assert (live["gating"], live["verdict"], live["version"]) == (True, "fail", version("sglang"))
    assert live["parameters"] == entries["sglang-0.5.23"]["parameters"]
    assert live["tensors"] == entries["sglang-0.5.23"]["tensors"]
    rules = {finding["rule"] for finding in said["findings"] if finding["engine"] == LIVE}
    assert {"dropped-tensor", "unfilled-parameter", "dead-ignore-entry"} <= rules


def test_a_draft_that_it_refuses_is_a_finding(tmp_path: Path) -> None:
    source = materialize(FIXTURES / "cases" / "shape-fc", tmp_path / "draft")
    said = report(str(source), "--engine", LIVE)
    (live,) = (engine for engine in said["engines"] if engine["name"] == LIVE)
    assert live["refusal"]["stage"] == "load"
    assert live["refusal"]["tensor"] == "fc.weight"
    assert "refused-load" in {finding["rule"] for finding in said["findings"] if finding["engine"] == LIVE}


def test_tree_and_single_files() -> None:
    done = run("tree", str(FIXTURES / "seed-w8a16" / "model.safetensors"), "--engine", LIVE)
    assert done.returncode == 0
    assert "CompressedTensorsWNA16 asked as 'qkv_proj'" in done.stdout


def test_several_ranks_cannot_be_asked() -> None:
    done = run(str(FIXTURES / "seed-bf16"), "--engine", LIVE, "--tp", "2")
    assert done.returncode == 2
    assert "one rank" in done.stderr
