"""The seed: llm-compressor's W8A16 with q, k, v left dense under the names of the checkpoint."""

from pathlib import Path

import pytest

from dflash_audit.auditing import Request, audit
from dflash_audit.report import Report

SEED = Path(__file__).parents[1] / "fixtures" / "seed-w8a16"
IGNORE = r"re:.*self_attn\.(q|k|v)_proj$"
LAYERS = (0, 1)


@pytest.fixture(scope="module")
def report() -> Report:
    return audit(Request(str(SEED)))


def subjects(report: Report, engine: str, rule: str) -> set[str]:
    found = [f for f in report.findings if (f.engine, f.rule) == (engine, rule)]
    return {name for finding in found for name in finding.subjects}


def test_the_release_drops_the_dense_attention_and_the_packed_projection(report: Report) -> None:
    assert subjects(report, "sglang-0.5.23", "dropped-tensor") == {
        *(f"layers.{i}.self_attn.{shard}_proj.weight" for i in LAYERS for shard in "qkv"),
        "fc.weight_packed",
        "fc.weight_scale",
        "fc.weight_shape",
    }


def test_the_release_leaves_them_unfilled(report: Report) -> None:
    leaves = ("weight_packed", "weight_scale", "weight_shape")
    assert subjects(report, "sglang-0.5.23", "unfilled-parameter") == {
        *(f"layers.{i}.self_attn.qkv_proj.{leaf}" for i in LAYERS for leaf in leaves),
        "fc.weight",
    }


def test_the_reason_is_said(report: Report) -> None:
    assert subjects(report, "sglang-0.5.23", "dead-ignore-entry") == {IGNORE}
    (finding,) = (f for f in report.findings if (f.rule, f.engine) == ("dead-ignore-entry", "sglang-0.5.23"))
    assert "'qkv_proj'" in finding.message


def test_the_next_release_serves_it(report: Report) -> None:
    assert [f for f in report.findings if f.engine == "sglang-next"] == []
    assert report.exit_code == 0


def test_users_of_the_release_are_thought_of(report: Report) -> None:
    (finding,) = (f for f in report.findings if f.engine is None)
    assert (finding.rule, finding.severity) == ("engines-disagree", "warning")
    assert "sglang-0.5.23" in finding.message
    assert "sglang-0.5.19" not in finding.message
