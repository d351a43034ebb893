"""What the replay of vLLM takes from the target, how it is served, and what it says of drafts it has not."""

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from materialize import write_zeros

from dflash_audit.auditing import Request, audit
from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.engines import engine
from dflash_audit.engines.vllm.serving import serve_command
from dflash_audit.finding import Finding
from dflash_audit.refusal import NotModelled
from dflash_audit.sources.checkpoint import Origin
from dflash_audit.sources.disk import read_path
from dflash_audit.target import read_target

CASES = Path(__file__).parents[2] / "fixtures" / "cases"
VLLM = "vllm-0.33.0"
COMMIT = "a" * 40

Tensors = dict[str, tuple[str, list[int]]]


def changed(
    case: str, folder: Path, config: dict[str, Any] | None = None, tensors: Tensors | None = None
) -> Path:
    """The case's checkpoint with keys of its config, or the whole of it, and tensors put in."""
    folder.mkdir(parents=True)
    old = json.loads((CASES / case / "config.json").read_text())
    whole = config if config and "speculators_model_type" in config else {**old, **(config or {})}
    (folder / "config.json").write_text(json.dumps(whole))
    had = json.loads((CASES / case / "tensors.json").read_text())
    write_zeros(folder / "model.safetensors", {**had, **(tensors or {})})
    return folder


def replayed(folder: Path, conditions: Conditions | None = None) -> EngineRun:
    return engine(VLLM).replay(read_path(folder), conditions or Conditions())


def conditions_of(folder: Path, **numbers: int) -> Conditions:
    """A target with these numbers in its config."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"architectures": ["Qwen3ForCausalLM"], **numbers}))
    return replace(Conditions(), target=read_target(str(folder)))


def prefixes(run: EngineRun) -> set[str]:
    assert run.tree is not None
    return {module.prefix for _, module, _ in run.tree.parameters() if module.prefix is not None}


def test_layers_are_numbered_after_the_targets(tmp_path: Path) -> None:
    draft = changed("ct-dflash1-w8a16_all", tmp_path / "draft", {"num_target_layers": 12})
    run = replayed(draft)
    assert "model.layers.12.self_attn.qkv_proj" in prefixes(run)
    assert run.assumed == (
        "num_hidden_layers: 12, the draft's num_target_layers",
        "hidden_size: 128, the draft's hidden_size",
        "vocab_size: 256, the draft's vocab_size",
    )
    run = replayed(draft, conditions_of(tmp_path / "target", num_hidden_layers=36, hidden_size=128))
    assert {"model.layers.36.self_attn.qkv_proj", "model.fc"} <= prefixes(run)
    assert run.assumed == ("vocab_size: 256, the draft's vocab_size",)


def test_without_a_word_the_depth_is_assumed(tmp_path: Path) -> None:
    draft = changed("dense-dflash1", tmp_path / "draft", {"num_target_layers": None})
    run = replayed(draft)
    assert run.refusal is None
    assert run.assumed[0] == "num_hidden_layers: 8, for want of any"


def test_an_ignore_list_with_a_layers_number_is_for_one_depth(tmp_path: Path) -> None:
    """Only a target of 36 layers makes the exact name the draft's first layer."""
    config = json.loads((CASES / "ct-dflash1-w8a16_all" / "config.json").read_text())["quantization_config"]
    config["ignore"] = ["model.layers.36.self_attn.o_proj"]
    dense: Tensors = {"layers.0.self_attn.o_proj.weight": ("BF16", [128, 256])}
    draft = changed("ct-dflash1-w8a16_all", tmp_path / "draft", {"quantization_config": config}, dense)
    header = json.loads((CASES / "ct-dflash1-w8a16_all" / "tensors.json").read_text())
    kept = {name: each for name, each in header.items() if not name.startswith("layers.0.self_attn.o_proj.")}
    write_zeros(draft / "model.safetensors", {**kept, **dense})
    assert replayed(draft).refusal is not None
    deep = replayed(draft, conditions_of(tmp_path / "target", num_hidden_layers=36))
    assert deep.refusal is None and deep.plan is not None and not deep.plan.missing()


def test_a_vocabulary_of_its_own_needs_the_table_to_the_targets(tmp_path: Path) -> None:
    own: Tensors = {"d2t": ("I64", [128]), "lm_head.weight": ("BF16", [128, 128])}
    draft = changed("dense-dflash1", tmp_path / "draft", {"draft_vocab_size": 128}, own)
    run = replayed(draft)
    assert run.refusal is None and run.plan is not None and not run.plan.missing()
    stray = changed("dense-dflash1", tmp_path / "stray", None, {"d2t": ("I64", [256])})
    refusal = replayed(stray).refusal
    assert refusal is not None and (refusal.stage, refusal.tensor) == ("load", "d2t")


def speculators(kind: str, **more: Any) -> dict[str, Any]:
    inner = json.loads((CASES / "dense-dflash1" / "config.json").read_text())
    for key in ("architectures", "dflash_config", "num_target_layers"):
        del inner[key]
    return {
        "architectures": ["AnySpeculator"],
        "speculators_model_type": kind,
        "block_size": 8,
        "mask_token_id": 250,
        "aux_hidden_state_layer_ids": [2, 4],
        "draft_vocab_size": 256,
        "speculators_config": {
            "algorithm": kind,
            "default_proposal_method": "greedy",
            "proposal_methods": [{"proposal_type": "greedy", "speculative_tokens": 7}],
            "verifier": {"name_or_path": "t", "architectures": ["Qwen3ForCausalLM"]},
        },
        "transformer_layer_config": inner,
        **more,
    }


def test_a_config_of_speculators_is_rewritten(tmp_path: Path) -> None:
    run = replayed(changed("dense-dflash1", tmp_path / "draft", speculators("dflash")))
    assert (run.refusal, run.model_class) == (None, "DFlashQwen3ForCausalLM")
    assert run.plan is not None and not run.plan.missing()


@pytest.mark.parametrize("kind", ["xpress", "medusa"])
def test_another_kind_of_speculators_is_refused(kind: str, tmp_path: Path) -> None:
    run = replayed(changed("dense-dflash1", tmp_path / "draft", speculators(kind)))
    assert run.refusal is not None and run.tree is None


@pytest.mark.parametrize("named", [2.5, 7, [["Qwen3DSparkModel"]], [{}]])
def test_architectures_that_are_no_names_are_refused(named: Any, tmp_path: Path) -> None:
    config = speculators("dspark", architectures=named)
    run = replayed(changed("dense-dflash1", tmp_path / "draft", config))
    assert run.refusal is not None and run.refusal.stage == "config"


@pytest.mark.parametrize(
    ("draft", "given", "expected"),
    [
        (Origin("local", "my drafts/one"), Conditions(), {"model": "my drafts/one"}),
        (Origin("hub", "org/name", "main", COMMIT), Conditions(), {"model": "org/name", "revision": COMMIT}),
        (Origin("hub", "org/name:dflash", None, COMMIT), Conditions(), {"model": "DRAFT"}),
    ],
)
def test_the_command(draft: Origin, given: Conditions, expected: dict[str, Any]) -> None:
    words = shlex.split(" ".join(serve_command("dflash", 7, draft, given)))
    assert words[:4] == ["vllm", "serve", "TARGET", "--speculative-config"]
    assert json.loads(words[4]) == {"method": "dflash", "num_speculative_tokens": 7, **expected}


def test_the_command_names_the_servers_options() -> None:
    command = serve_command("dspark", 4, Origin("local", "d"), Conditions(tp=2, quantization="modelopt"))
    assert command[2:] == ("--tensor-parallel-size 2", "--quantization modelopt")


def test_a_pass_says_the_command(tmp_path: Path) -> None:
    run = replayed(changed("dense-dspark", tmp_path / "draft"))
    assert any('"method": "dspark"' in words for words in run.serve)


def disagreement(folder: Path) -> Finding | None:
    found = audit(Request(str(folder), frozenset(("sglang-next",))))
    return next((each for each in found.findings if each.rule == "engines-disagree"), None)


def test_a_family_that_it_has_not_alarms_nobody(tmp_path: Path) -> None:
    said = disagreement(changed("dense-domino", tmp_path / "draft"))
    assert said is not None
    assert (said.severity, said.subject) == ("note", VLLM)
    assert f"{VLLM} serves no drafts with a Domino projector" in said.message


def test_a_layout_that_it_does_not_load_is_a_warning(tmp_path: Path) -> None:
    said = disagreement(changed("../differences/07-prefixed-names", tmp_path / "draft"))
    assert said is not None and said.severity == "warning"


@pytest.mark.parametrize("tokens", [100_000, 10**400], ids=["many", "more than a float holds"])
def test_a_block_of_more_tokens_than_a_step_has_is_refused(tokens: int, tmp_path: Path) -> None:
    config = json.loads((CASES / "dense-dflash1" / "config.json").read_text())["dflash_config"]
    changes = {"dflash_config": {**config, "block_size": tokens}, "block_size": tokens}
    refusal = replayed(changed("dense-dflash1", tmp_path / "draft", changes)).refusal
    assert refusal is not None and (refusal.stage, refusal.reason[:21]) == ("config", "block_size is more th")


def test_what_is_beyond_the_replay_is_skipped(tmp_path: Path) -> None:
    run = replayed(changed("dense-dspark", tmp_path / "draft", {"architectures": ["K3DSparkModel"]}))
    assert run.refusal is None and run.skipped is not None


def test_a_muse_glimmer_draft_may_leave_the_vocabulary_out(tmp_path: Path) -> None:
    config = {
        "architectures": ["MuseGlimmerAssistantModel"],
        "model_type": "muse_glimmer_assistant",
        **{"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2, "head_dim": 64},
        **{"num_attention_heads": 4, "num_key_value_heads": 2, "dtype": "bfloat16", "is_causal": False},
        **{"sliding_window": 128, "layer_types": ["sliding_attention"] * 2, "target_layer_ids": [1, 3]},
    }
    draft = changed("dense-dflash1", tmp_path / "draft")
    (draft / "config.json").write_text(json.dumps(config))
    run = replayed(draft)
    assert run.refusal is None and run.config is not None
    assert run.config["vocab_size"] == 202048
    assert run.config["dflash_config"]["causal"] is False


def test_its_forward_pass_is_not_modelled(tmp_path: Path) -> None:
    run = replayed(changed("dense-dflash1", tmp_path / "draft"))
    with pytest.raises(NotModelled, match="vLLM"):
        engine(VLLM).forward(run)
