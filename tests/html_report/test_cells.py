"""The map's cells say what the JSON report says, in every recorded case."""

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from dflash_audit.formats.html.cells import Box, Cell, boxes
from dflash_audit.formats.json_report import document
from dflash_audit.report import Report

FIXTURES = Path(__file__).parents[2] / "fixtures"
CASES = [path.parent for path in sorted((FIXTURES / "cases").glob("*/tensors.json"))]
Audited = Callable[[str], Report]


def by_engine(report: Report) -> dict[str, list[Box]]:
    assert report.checkpoint is not None
    return {
        run.engine: boxes(run, report.checkpoint.tensors, report.of_engine(run.engine)) for run in report.runs
    }


def cells_of(boxes: list[Box]) -> list[Cell]:
    return [cell for box in boxes for cell in box.cells]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_cells_are_those_of_the_json_report(case: Path, audited: Audited) -> None:
    report = audited(f"cases/{case.name}")
    assert report.checkpoint is not None
    refusals = {run.engine: {r.tensor for r in run.plan.refusals} for run in report.runs if run.plan}
    for engine in document(report)["engines"]:
        cells = cells_of(by_engine(report)[engine["name"]])
        lost = {cell.name: cell.state.id for cell in cells if cell.is_tensor}
        if not engine["parameters"]:
            assert lost == {tensor.name: "unread" for tensor in report.checkpoint.tensors}
            continue
        outcomes = {t["name"]: t["outcome"] for t in engine["tensors"] if t["outcome"] != "loaded"}
        assert lost.keys() == outcomes.keys()
        refused = {name for name, state in lost.items() if state == "refused"}
        assert all(lost[name] == outcomes[name] for name in lost.keys() - refused)
        assert refused == lost.keys() & refusals[engine["name"]]
        unfilled: dict[str, list[str]] = {}
        for cell in cells:
            if cell.state.id == "unfilled":
                unfilled.setdefault(cell.name, []).append(str(cell.shard))
        missing = {p["name"]: p["missing"] for p in engine["parameters"] if p["missing"]}
        assert unfilled.keys() == missing.keys()
        assert all(unfilled[name] == shards for name, shards in missing.items() if shards != ["all"])
        sources = {source.name for cell in cells if not cell.is_tensor for source in cell.sources}
        assert sources == {t["name"] for t in engine["tensors"] if t["outcome"] == "loaded"}
        assert {cell.name for cell in cells if not cell.is_tensor} == {
            p["name"] for p in engine["parameters"]
        }
        casts = {t["name"] for t in engine["tensors"] if t["cast"] and t["cast"]["lossy"]}
        assert {s.name for c in cells if c.state.id == "lossy" for s in c.sources} == casts


def test_shards_share_the_bytes_of_their_parameter(audited: Audited) -> None:
    cells = cells_of(by_engine(audited("seed-bf16"))["sglang-next"])
    fused = [cell for cell in cells if cell.name == "layers.0.self_attn.qkv_proj.weight"]
    stored = {"q": 256, "k": 128, "v": 128}  # rows of the seed's tensors, each with 128 numbers of 2 bytes
    assert {cell.shard: cell.size for cell in fused} == {shard: n * 128 * 2 for shard, n in stored.items()}
    assert math.prod(fused[0].shape) * 2 == sum(cell.size for cell in fused)


def test_lost_tensors_stand_with_the_module_that_they_are_for(audited: Audited) -> None:
    release = {box.name: box for box in by_engine(audited("seed-w8a16"))["sglang-0.5.23"]}
    states = Counter((cell.state.id, cell.label) for cell in release["fc"].cells)
    assert states == {
        ("unfilled", "weight"): 1,
        ("dropped", "weight_packed"): 1,
        ("dropped", "weight_scale"): 1,
        ("dropped", "weight_shape"): 1,
    }
    dense = [c for c in release["layers.1.self_attn.qkv_proj"].cells if c.state.id == "dropped"]
    assert {(cell.shard, cell.label) for cell in dense} == {(s, "weight") for s in "qkv"}
    assert "has no parameter for it" in dense[0].note


def test_tensors_of_no_module_have_a_box_of_their_own(audited: Audited) -> None:
    found = {box.name: box for box in by_engine(audited("cases/conv-keys-lost"))["sglang-next"]}
    foreign = {name for name, box in found.items() if box.module_class is None}
    assert foreign and all("conv" in name for name in foreign)
    notes = {cell.note for name in foreign for cell in found[name].cells}
    assert notes == {f"the draft has no module {name}" for name in foreign}


@pytest.mark.parametrize(
    ("case", "state", "name", "note"),
    [
        ("extra-head-embed", "ignored", "lm_head.weight", "the draft borrows the target's head"),
        (
            "fp8-dynamic-bf16-weights",
            "lossy",
            "layers.0.mlp.down_proj.weight",
            "cast from bfloat16 to float8",
        ),
        ("modelopt-nvfp4-config", "own", "layers.0.self_attn.attn.k_scale", ""),
    ],
)
def test_a_state_and_what_is_said_of_it(
    case: str, state: str, name: str, note: str, audited: Audited
) -> None:
    cells = cells_of(by_engine(audited(f"cases/{case}"))["sglang-next"])
    assert [cell.note for cell in cells if (cell.state.id, cell.name) == (state, name) and note in cell.note]


def test_a_resized_parameter_is_what_the_rule_says(audited: Audited) -> None:
    found = by_engine(audited("rules/resized-parameter/bad-heads-too-few"))["sglang-0.5.23"]
    resized = [cell for cell in cells_of(found) if cell.state.id == "resized"]
    assert "layers.0.self_attn.o_proj.weight" in {cell.name for cell in resized}
    assert all("numbers and took" in cell.note for cell in resized)
    by_design = by_engine(audited("cases/dense-lilicorr"))["sglang-0.5.23"]
    assert not [cell for cell in cells_of(by_design) if cell.state.id == "resized"]
