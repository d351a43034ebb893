"""The list that makes engines build what is on disk: what it says, and that it holds."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from materialize import materialize
from parity.case import FIXTURES, Case
from parity.expectation import fails

from dflash_audit.diagnosis.ignore_lists import entries_at, place_of, with_list
from dflash_audit.diagnosis.spelling import Spelling, spelled
from dflash_audit.diagnosis.stored import faults
from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.engines import engine
from dflash_audit.sources.checkpoint import Checkpoint
from dflash_audit.sources.disk import read_path

RELEASE, NEXT, VLLM = "sglang-0.5.23", "sglang-next", "vllm-0.33.0"
BOTH = (RELEASE, NEXT)
ALL = (*BOTH, VLLM)
CONDITIONS = Conditions()


def checkpoint(case: str, scratch: Path) -> Checkpoint:
    return read_path(str(materialize(FIXTURES / case, scratch / "checkpoint")))


def replays(of: Checkpoint) -> list[EngineRun]:
    return [engine(name).replay(of, CONDITIONS) for name in ALL]


def spell(of: Checkpoint) -> Spelling:
    found = spelled(of, replays(of), CONDITIONS)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("case", "added", "serves"),
    [
        ("cases/ct-dflash2-w8a16_seed", [r"re:(.*\.)?qkv_proj$"], [NEXT, VLLM]),
        ("cases/ct-ignore-gate-up-fused-spelling", [r"re:(.*\.)?(gate_proj|up_proj|fc)$"], ALL),
        ("published/qwen3.8-27b-dflash2-w4a16-fc16", [r"re:(.*\.)?fc$"], ALL),
        ("rules/dead-ignore-entry/bad-path-of-the-layer", [r"re:(.*\.)?(qkv_proj|o_proj|fc)$"], ALL),
        ("rules/dead-ignore-entry/bad-nvfp4-by-name", ["*v_proj", "*o_proj"], ALL),
        ("rules/dropped-tensor/bad-dense-and-not-ignored", [r"re:(.*\.)?(o_proj|fc)$"], ALL),
        ("cases/fp8-block-qkv-kept", ["q_proj", "k_proj", "v_proj"], [NEXT]),
    ],
)
def test_adds_what_is_lacking(case: str, added: list[str], serves: list[str], tmp_path: Path) -> None:
    of = checkpoint(case, tmp_path)
    spelling = spell(of)
    place = place_of(of, next(run.quantization for run in replays(of)))
    assert place is not None
    assert [*spelling.added] == added
    assert spelling.removed == ()
    assert spelling.entries == (*entries_at(of, place), *added)
    assert [*spelling.serves] == [*serves]


@pytest.mark.parametrize(
    ("case", "removed", "added", "serves"),
    [
        (
            "rules/wrong-ignore-entry/bad-o-proj-packed",
            ["re:.*self_attn.*"],
            [r"re:(.*\.)?(qkv_proj|q_proj|k_proj|v_proj)$"],
            ALL,
        ),
        ("rules/wrong-ignore-entry/bad-fp8-down", ["down_proj"], [], BOTH),
    ],
)
def test_takes_out_what_does_harm(
    case: str, removed: list[str], added: list[str], serves: tuple[str, ...], tmp_path: Path
) -> None:
    spelling = spell(checkpoint(case, tmp_path))
    assert ([*spelling.removed], [*spelling.added]) == (removed, added)
    assert spelling.serves == serves


def test_aims_the_only_group_at_every_linear(tmp_path: Path) -> None:
    spelling = spell(checkpoint("rules/dead-target-entry/bad-path-of-a-model", tmp_path))
    assert spelling.all_linear
    assert (spelling.added, spelling.removed, spelling.serves) == ((r"re:(.*\.)?fc$",), (), ALL)


def test_writes_where_the_method_reads(tmp_path: Path) -> None:
    spelling = spell(checkpoint("rules/unread-ignore-list/bad-modelopt-file", tmp_path))
    assert spelling.place.name == "exclude_modules in hf_quant_config.json"
    assert "*o_proj" in spelling.entries
    assert spelling.serves == ALL


def test_names_layers_that_differ_by_their_layer(tmp_path: Path) -> None:
    """Only an engine that asks by layer can tell them apart."""
    of = checkpoint("rules/dropped-tensor/bad-dense-and-not-ignored", tmp_path)
    first = "layers.0.self_attn.o_proj"
    packed = [t for t in of.tensors if t.name.startswith("layers.0.mlp.down_proj.")]
    renamed = [t._replace(name=t.name.replace("layers.0.mlp.down_proj", first)) for t in packed]
    kept = [t for t in of.tensors if not t.name.startswith(first)]
    mixed = replace(of, tensors=(*kept, *renamed))
    spelling = spell(mixed)
    # vLLM counts the draft's layers on from the target's four.
    names = r"layers\.1\.self_attn\.o_proj|fc|model\.layers\.5\.self_attn\.o_proj"
    assert spelling.added == (rf"re:(.*\.)?({names})$",)
    assert NEXT in spelling.serves
    assert RELEASE not in spelling.serves


@pytest.mark.parametrize(
    "case",
    [
        "cases/ct-dflash2-w4a16_all",  # fc alone, which the release never asks about
        "cases/ct-dflash2-w8a16_q_only",  # one shard of three
        "cases/ct-config-lost",  # no method, no list
        "cases/fp8-dynamic-bf16-weights",  # nothing is quantized: the config has to go
        "cases/gptq-all",  # a list of another form
        "published/tiny-dflash2",
        "rules/dead-ignore-entry/good-spelled",
    ],
)
def test_says_nothing_where_no_list_helps(case: str, tmp_path: Path) -> None:
    of = checkpoint(case, tmp_path)
    assert spelled(of, replays(of), CONDITIONS) is None


@pytest.mark.parametrize(
    ("case", "twin"),
    [
        ("rules/dead-ignore-entry/bad-path-of-the-layer", "rules/dead-ignore-entry/good-spelled"),
        ("cases/ct-ignore-gate-up-fused-spelling", "rules/dead-ignore-entry/good-gate-up-spelled"),
    ],
)
def test_the_engine_itself_serves_the_spelled_list(case: str, twin: str, tmp_path: Path) -> None:
    """The twin holds the spelled list, and the record of the real engine on it."""
    spelling = spell(checkpoint(case, tmp_path))
    config = json.loads((FIXTURES / twin / "config.json").read_text())
    assert config["quantization_config"]["ignore"] == [*spelling.entries]
    records = Case(FIXTURES / twin).records
    assert {engine for engine in ALL if not fails(records[engine])} == {*spelling.serves}


@pytest.mark.parametrize("folder", sorted((FIXTURES / "cases").glob("ct-*")), ids=lambda path: path.name)
def test_whatever_is_said_was_replayed(folder: Path, tmp_path: Path) -> None:
    of = checkpoint(f"cases/{folder.name}", tmp_path)
    spelling = spelled(of, replays(of), CONDITIONS)
    if spelling is not None:
        runs = replays(with_list(of, spelling.place, spelling.entries, spelling.all_linear))
        assert tuple(run.engine for run in runs if not faults(run)) == spelling.serves
        assert sum(map(faults, runs)) < sum(map(faults, replays(of)))


def test_the_advice_can_be_pasted(tmp_path: Path) -> None:
    advice = spell(checkpoint("cases/ct-dflash2-w8a16_seed", tmp_path)).advice()
    assert advice == (
        r'Add "re:(.*\\.)?qkv_proj$" to ignore.'
        " Replayed so, sglang-next and vllm-0.33.0 build every linear as it is on disk."
        " No list mends all for sglang-0.5.23: it builds fc dense, which is quantized on disk."
    )
