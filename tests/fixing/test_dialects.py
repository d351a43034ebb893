"""Configs that a repair mends in their own dialect or not at all, and values that it does not guess."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from materialize import write_zeros
from parity.case import FIXTURES

from dflash_audit.auditing import Request, audit
from dflash_audit.fixing.fix import Fix, fix

VLLM = frozenset(("vllm-0.33.0",))
SPECULATORS = "differences/17-speculators"
"""One that vLLM serves, by its record."""

Change = Callable[[dict[str, Any], dict[str, Any]], object]
"""Of config.json and of the tensors, in place."""


def laid_out(name: str, scratch: Path, change: Change) -> Request:
    config = json.loads((FIXTURES / name / "config.json").read_text())
    tensors = json.loads((FIXTURES / name / "tensors.json").read_text())
    change(config, tensors)
    (scratch / "config.json").write_text(json.dumps(config, indent=1))
    write_zeros(scratch / "model.safetensors", tensors)
    return Request(str(scratch), VLLM)


def told(fixed: Fix) -> dict[str, Any]:
    return {edit.key: edit.new for edit in fixed.edits}


def test_the_algorithm_of_speculators_tells_the_type(tmp_path: Path) -> None:
    request = laid_out(SPECULATORS, tmp_path, lambda config, _: config.pop("speculators_model_type"))
    fixed = fix(request)
    assert fixed.outcome == "mended"
    assert told(fixed) == {"speculators_model_type": "dflash"}
    assert fixed.edits[0].doubt is None


def test_the_type_of_speculators_tells_the_algorithm(tmp_path: Path) -> None:
    """And nothing of what else stood in the object, which is said."""
    request = laid_out(SPECULATORS, tmp_path, lambda config, _: config.pop("speculators_config"))
    fixed = fix(request)
    assert fixed.outcome == "mended"
    assert told(fixed) == {"speculators_config": {"algorithm": "dflash"}}
    assert fixed.edits[0].doubt is not None


def test_a_model_type_hides_a_config_of_speculators(tmp_path: Path) -> None:
    request = laid_out(SPECULATORS, tmp_path, lambda config, _: config.update(model_type="qwen3"))
    fixed = fix(request)
    assert fixed.outcome == "mended"
    assert [edit.path for edit in fixed.edits] == [("model_type",)]
    assert "model_type" not in json.loads(fixed.new)


@pytest.mark.parametrize(
    "lost",
    [
        ("aux_hidden_state_layer_ids",),
        ("mask_token_id",),
        ("transformer_layer_config",),
        ("speculators_config", "speculators_model_type"),
    ],
    ids="+".join,
)
def test_no_config_of_speculators_becomes_another_dialect(lost: tuple[str, ...], tmp_path: Path) -> None:
    """Rope, vocabulary and taps stand where another dialect does not look."""
    fixed = fix(laid_out(SPECULATORS, tmp_path, lambda config, _: [config.pop(key) for key in lost]))
    assert (fixed.outcome, fixed.edits) == ("no-change", ())


def test_a_window_that_is_null_is_not_left_out(tmp_path: Path) -> None:
    """Without the key the config's class fills 4096 in, which no draft of these layers has to have."""
    gone = laid_out("cases/dense-dflash2", tmp_path, lambda config, _: config.update(sliding_window=None))
    fixed = fix(gone)
    assert fixed.outcome in ("no-change", "not-enough")
    assert "sliding_window" not in told(fixed)


def _laguna(config: dict[str, Any], tensors: dict[str, Any]) -> None:
    """A Laguna draft as vLLM takes it, its q, k and v in one tensor, under a model type without mixtures."""
    config["draft_vocab_size"] = 256
    for layer in (0, 1):
        parts = [tensors.pop(f"layers.{layer}.self_attn.{part}_proj.weight") for part in "qkv"]
        shape = [sum(rows for _, (rows, _) in parts), parts[0][1][1]]
        tensors[f"layers.{layer}.self_attn.qkv_proj.weight"] = ["BF16", shape]


def test_kinds_of_layers_where_no_class_fills_them_in(tmp_path: Path) -> None:
    fixed = fix(laid_out("cases/dense-laguna", tmp_path, _laguna))
    assert fixed.outcome == "mended"
    assert told(fixed) == {"mlp_layer_types": ["dense", "dense"]}


def test_kinds_of_layers_that_no_tensor_tells(tmp_path: Path) -> None:
    def one_lost(config: dict[str, Any], tensors: dict[str, Any]) -> None:
        _laguna(config, tensors)
        for part in ("gate", "up", "down"):
            del tensors[f"layers.1.mlp.{part}_proj.weight"]

    fixed = fix(laid_out("cases/dense-laguna", tmp_path, one_lost))
    assert (fixed.outcome, fixed.edits) == ("no-change", ())


def test_split_attention_of_laguna_is_asked_for_in_one_tensor(tmp_path: Path) -> None:
    kinds = {"draft_vocab_size": 256, "mlp_layer_types": ["dense", "dense"]}
    found = audit(laid_out("cases/dense-laguna", tmp_path, lambda config, _: config.update(kinds)))
    (refused,) = (f for f in found.findings if f.engine == "vllm-0.33.0" and f.severity == "error")
    assert refused.rule == "refused-load" and refused.hint is not None
    assert "self_attn.qkv_proj.weight" in refused.hint


def test_an_unknown_model_type_is_no_matter_of_a_version(tmp_path: Path) -> None:
    """Engines stand on different ones."""
    request = laid_out("cases/dense-dflash2", tmp_path, lambda config, _: config.update(model_type="dflash"))
    told = [run.refusal.reason for run in audit(request).runs if run.refusal]
    assert told and not [reason for reason in told if "transformers 5" in reason]


def test_a_list_for_an_engine_that_takes_whole_names_alone(tmp_path: Path) -> None:
    """vLLM counts a draft's layers behind the target's, which is said beside the change."""
    fixed = fix(laid_out("cases/fp8-block-all", tmp_path, lambda *_: None))
    assert fixed.outcome == "mended"
    (edit,) = fixed.edits
    assert edit.key == "quantization_config.modules_to_not_convert"
    added = {f"model.layers.{n}.{at}_conv.kernel_projection" for n in (8, 9) for at in ("attention", "mlp")}
    assert edit.new[:2] == edit.old and {*edit.new[2:]} == added
    assert edit.doubt is not None and "--target" in edit.doubt
