"""`vllm@installed` from the command line to the report, with a package that stands for vLLM."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from materialize import write_zeros
from report_schema import valid
from test_cli import run

from dflash_audit.engines.installed.packages import PACKAGES, VLLM

LIVE = "vllm@installed"
FAKE = Path(__file__).parent / "fake"
ROOT = Path(__file__).parents[2]

with_stand_in = pytest.mark.skipif(
    shutil.which("gcc") is None, reason="the child makes up a driver's library, which takes gcc"
)
CONFIG: dict[str, Any] = {
    "architectures": ["DFlashDraftModel"],
    "model_type": "qwen3",
    "hidden_size": 8,
    "vocab_size": 64,
    "num_target_layers": 5,
    "block_size": 16,
    "dflash_config": {"mask_token_id": 1, "target_layer_ids": [1]},
}
TENSORS = {
    "fc.weight": ("BF16", [8, 8]),
    "norm.weight": ("BF16", [8]),
    "q_proj.weight": ("BF16", [8, 8]),
    "k_proj.weight": ("BF16", [8, 8]),
    "v_proj.weight": ("BF16", [8, 8]),
}


def draft(folder: Path, tensors: dict[str, tuple[str, list[int]]] | None = None, **changes: Any) -> Path:
    folder.mkdir()
    config = {key: value for key, value in {**CONFIG, **changes}.items() if value is not None}
    (folder / "config.json").write_text(json.dumps(config))
    write_zeros(folder / "model.safetensors", {**TENSORS, **(tensors or {})})
    return folder


def done(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return run(*words, cwd=cwd, PYTHONPATH=os.pathsep.join((str(FAKE), str(ROOT))))


def live(source: Path, *words: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The engine's entry in the report, and its findings."""
    said = json.loads(done(str(source), "--engine", LIVE, "--json", *words).stdout)
    valid(said)
    (entry,) = (engine for engine in said["engines"] if engine["name"] == LIVE)
    return entry, [finding for finding in said["findings"] if finding["engine"] == LIVE]


@with_stand_in
def test_an_audit_tells_what_it_built_and_loaded(tmp_path: Path) -> None:
    entry, findings = live(draft(tmp_path / "draft"))
    assert (entry["version"], entry["model_class"]) == ("9.9.9", "DFlashQwen3ForCausalLM")
    assert (entry["verdict"], findings) == ("pass", [])
    parameters = {p["name"]: (p["shape"], p["prefix"], p["scheme"]) for p in entry["parameters"]}
    assert parameters == {
        "model.embed_tokens.weight": ([64, 8], "model.embed_tokens", "Unquantized"),
        "model.qkv_proj.weight": ([24, 8], "model.layers.5.qkv_proj", "Unquantized"),
        "model.fc.weight": ([8, 8], "model.fc", "Unquantized"),
        "model.norm.weight": ([8], "model.norm", None),
    }
    targets = {tensor["name"]: tensor["targets"] for tensor in entry["tensors"]}
    assert targets["k_proj.weight"] == ["model.qkv_proj.weight[k]"]
    assert entry["assumed"][0] == "num_hidden_layers: 5, the draft's num_target_layers"


@with_stand_in
@pytest.mark.parametrize("card", ["t4", "l40s", "b200", "rtx5090"])
def test_a_draft_is_built_for_every_card(card: str, tmp_path: Path) -> None:
    """On the newest ones attention makes a buffer on the card, which is not there."""
    entry, _ = live(draft(tmp_path / "draft"), "--gpu", card)
    assert (entry["model_class"], entry["refusal"]) == ("DFlashQwen3ForCausalLM", None)


@with_stand_in
def test_a_target_is_the_one_that_is_named(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    config = {"architectures": ["Qwen3ForCausalLM"], "num_hidden_layers": 36, "hidden_size": 16}
    (tmp_path / "target" / "config.json").write_text(json.dumps({**config, "vocab_size": 128}))
    source = draft(tmp_path / "draft", {"fc.weight": ("BF16", [8, 16])})
    entry, _ = live(source, "--target", str(tmp_path / "target"))
    shapes = {p["name"]: (p["shape"], p["prefix"]) for p in entry["parameters"]}
    assert shapes["model.qkv_proj.weight"][1] == "model.layers.36.qkv_proj"
    assert shapes["model.fc.weight"][0] == [8, 16]
    assert shapes["model.embed_tokens.weight"][0] == [128, 8]
    assert entry["assumed"] == []


@with_stand_in
def test_every_tensor_that_it_has_no_place_for_is_told(tmp_path: Path) -> None:
    """The real class stops at the first: it is asked again without it."""
    odd = {"odd.weight": ("BF16", [8]), "norm.weight": ("BF16", [9]), "a.b": ("BF16", [1])}
    entry, findings = live(draft(tmp_path / "draft", odd))
    assert (entry["verdict"], entry["refusal"]["stage"]) == ("fail", "load")
    refused = {s for finding in findings if finding["rule"] == "refused-load" for s in finding["subjects"]}
    assert refused == {"odd.weight", "norm.weight", "a.b"}


@with_stand_in
@pytest.mark.parametrize(
    ("changes", "stage", "reason"),
    [
        ({"tell": True}, "config", "ValueError: dflash 15"),
        ({"tell": True, "block_size": None}, "config", "ValueError: dflash 7"),
        ({"tell": True, "architectures": ["Qwen3DSparkModel"]}, "config", "ValueError: dspark 16"),
        ({"block_size": [16]}, "config", "block_size must be a number, got [16]"),
        ({"block_size": "many"}, "config", "many"),
        ({"architectures": ["Other"]}, "class", "Model architectures ['Other'] are not supported"),
        ({"quantization_config": {"x": 1}}, "quant_config", "the quantization config is odd"),
        ({"hidden_size": "wide"}, "build", "TypeError"),
    ],
)
def test_where_it_stops_is_told(changes: dict[str, Any], stage: str, reason: str, tmp_path: Path) -> None:
    entry, _ = live(draft(tmp_path / "draft", **changes))
    assert (entry["verdict"], entry["refusal"]["stage"]) == ("fail", stage)
    assert reason in entry["refusal"]["reason"]


@with_stand_in
@pytest.mark.parametrize("layers", [10**6, int("9" * 400)])
def test_a_target_of_a_million_layers_has_no_stand_in(layers: int, tmp_path: Path) -> None:
    entry, _ = live(draft(tmp_path / "draft", num_target_layers=layers))
    assert entry["verdict"] == "skipped"


@with_stand_in
def test_a_class_that_takes_its_own_target_is_skipped(tmp_path: Path) -> None:
    entry, findings = live(draft(tmp_path / "draft", architectures=["K3DSparkModel"]))
    assert (entry["verdict"], findings) == ("skipped", [])


@with_stand_in
def test_code_of_a_checkpoint_is_not_run(tmp_path: Path) -> None:
    source = draft(tmp_path / "draft", auto_map="evil.py")
    (source / "evil.py").write_text(f"open({str(tmp_path / 'was-here')!r}, 'w')")
    entry, _ = live(source)
    assert "code of the checkpoint" in entry["refusal"]["reason"]
    assert not (tmp_path / "was-here").exists()


@with_stand_in
def test_nor_is_code_in_the_current_folder(tmp_path: Path) -> None:
    source = draft(tmp_path / "draft")
    (source / "vllm.py").write_text("raise SystemExit(9)")
    ran = done(".", "--engine", LIVE, cwd=source)
    assert ran.returncode == 0, ran.stderr


@with_stand_in
def test_a_hostile_name_stays_a_name(tmp_path: Path) -> None:
    name = "\x1b[31m::error::</script>|\n"
    source = draft(tmp_path / "draft", {name: ("BF16", [1])}, architectures=[name])
    ran = done(str(source), "--engine", LIVE)
    assert ran.returncode == 1
    assert "\x1b" not in ran.stdout + ran.stderr
    assert "\n::error::" not in ran.stdout


@with_stand_in
def test_a_machine_that_lacks_memory_gives_no_verdict(tmp_path: Path) -> None:
    """The stand-in says so as torch does."""
    source = draft(tmp_path / "draft", num_hidden_layers=1 << 40)
    ran = done(str(source), "--engine", LIVE, "--json")
    assert (ran.returncode, json.loads(ran.stdout)["error"]["kind"]) == (3, "engine-failed")
    assert "too little memory" in ran.stdout


@with_stand_in
@pytest.mark.skipif(
    VLLM.installed_version() is not None, reason="the version is told of a vLLM that is installed"
)
def test_selfcheck_names_what_it_compares(tmp_path: Path) -> None:
    draft(tmp_path / "draft")
    ran = done("selfcheck", str(tmp_path / "draft"))
    lines = ran.stdout.splitlines()
    assert ran.returncode == 1
    assert lines[0] == "vLLM unknown has no profile; vllm-0.33.0 is the nearest."
    assert lines[-1] == "vllm-0.33.0 and the installed vLLM unknown agree on 0 of 1 drafts"


def test_it_does_not_warm_up(tmp_path: Path) -> None:
    """The forward pass of its drafts is not modelled; that is known before anything is run."""
    from dflash_audit.engine_run import EngineRun
    from dflash_audit.engines import engine
    from dflash_audit.refusal import NotModelled

    with pytest.raises(NotModelled, match="not modelled"):
        engine(LIVE).forward(EngineRun(LIVE))


@pytest.mark.skipif(VLLM.installed_version() is not None, reason="vLLM is installed")
@pytest.mark.parametrize(
    "words",
    [[str(ROOT / "fixtures" / "seed-bf16"), "--engine", LIVE], ["selfcheck", "--engine", "vllm-0.33.0"]],
)
def test_without_vllm_a_line_says_so(words: list[str]) -> None:
    ran = run(*words)
    said = " ".join(ran.stderr.replace("│", " ").split())
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "vllm@installed needs an installed vLLM, and there is none" in said
    assert "pip install vllm" in said


@pytest.mark.skipif(
    any(package.installed_version() for package in PACKAGES.values()), reason="there is an engine to compare"
)
def test_without_any_engine_there_is_no_selfcheck() -> None:
    ran = run("selfcheck")
    said = " ".join(ran.stderr.replace("│", " ").split())
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "pip install sglang" in said and "pip install vllm" in said
