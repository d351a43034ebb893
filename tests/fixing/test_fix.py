"""What a repair proposes for the recorded faults, and that what it proposes serves."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from materialize import materialize, write_zeros
from parity.case import FIXTURES, Case, recorded
from parity.expectation import fails

from dflash_audit import repairs
from dflash_audit.auditing import Request, audit
from dflash_audit.engine_run import Conditions
from dflash_audit.engines import ENGINES
from dflash_audit.fixing.fix import Fix, fix
from dflash_audit.repairs import REPAIRS
from dflash_audit.repairs.edit import ABSENT

DENSE = FIXTURES / "cases" / "dense-dflash2"
NEXT = frozenset(("sglang-next",))
GROUP = "quantization_config.config_groups.group_0"
PATTERN = r"re:(.*\.)?"

Edits = dict[str, Any]

MENDED: dict[str, Edits] = {
    "cases/arch-unknown": {"architectures": ["DFlash2DraftModel"]},
    "cases/conv-keys-lost": {"dflash_config.conv_kernel_size": 2, "dflash_config.conv_group_size": 16},
    "cases/conv-one-key": {"dflash_config.conv_group_size": 16},
    "cases/dflash1-as-dflash2": {"architectures": ["DFlashDraftModel"]},
    "cases/dflash2-as-dflash1": {"architectures": ["DFlash2DraftModel"]},
    "cases/fp8-dynamic-bf16-weights": {"quantization_config": ABSENT},
    "cases/layer-types-short": {"layer_types": ["sliding_attention"] * 2},
    "cases/kv-heads-wrong": {"num_key_value_heads": 2},
    "cases/mask-string": {"dflash_config.mask_token_id": 250},
    "cases/quant-empty": {"quantization_config": ABSENT},
    "cases/quant-unknown": {"quantization_config": ABSENT},
    "cases/selector-keys-lost": {"dflash_config.selector_rank": 16, "dflash_config.selector_top_k": 16},
    "cases/sliding-disabled": {"use_sliding_window": True},
    "fuzz/fuzz-105": {"quantization_config.extra_config.fc": ABSENT},
    "fuzz/fuzz-47": {"intermediate_size": 256},
    "regressions/ct-int8-static-inputs": {
        f"{GROUP}.input_activations.strategy": "token",
        f"{GROUP}.input_activations.dynamic": True,
    },
    "regressions/head-dim-zero": {"head_dim": 32},
    "regressions/nemotron-aux-layers-text": {"eagle_aux_hidden_state_layer_ids": [2]},
    "regressions/rope-linear-integer-factor": {"rope_parameters.factor": 2.0},
    "rules/key-against-tensors/bad-biases-announced-in-vain": {"attention_bias": False},
    "rules/key-against-tensors/bad-conv-kernel-4": {"dflash_config.conv_kernel_size": 2},
    "rules/key-against-tensors/bad-head-dim-missing": {"head_dim": 16},
    "rules/key-against-tensors/bad-lilicorr-block-16": {"dflash_config.block_size": 8},
    "rules/key-against-tensors/bad-markov-rank-nested": {"markov_rank": 16, "markov_head_type": "vanilla"},
    "rules/key-against-tensors/bad-sinks-unannounced": {"dflash_config.attention_sink_bias": True},
    "rules/key-against-tensors/bad-vocabulary-missing": {"vocab_size": 64},
    "rules/nemotron-near-miss/bad-algorithm": {"quantization_config.quant_algo": "W4A16_NVFP4"},
    "rules/nemotron-near-miss/bad-anchor": {"sample_from_anchor": False},
    "rules/nemotron-near-miss/bad-embedding-flag": {"has_embed_tokens": True},
    "rules/nemotron-near-miss/bad-second-list-lost": {"eagle_aux_hidden_state_layer_ids": [1, 2, 3, 4]},
    "rules/resized-parameter/bad-heads-too-few": {"num_attention_heads": 4},
    "rules/unread-key/bad-sinks-key-at-the-top": {"dflash_config.attention_sink_bias": True},
    "rules/unused-window/bad-use-missing": {"use_sliding_window": True},
    "rules/wrong-class/bad-dspark-as-dflash": {"architectures": ["Qwen3DSparkModel"]},
    "rules/wrong-class/bad-laguna-as-dflash": {"architectures": ["DFlashLagunaForCausalLM"]},
    "published/qwen3.8-27b-dflash2-w4a16-fc8": {
        "quantization_config.config_groups.group_1.targets": [r"re:.*\.fc$", f"{PATTERN}fc$"]
    },
}
"""Case -> every edit, by the keys down to it; the value is the one that the tensors were made with."""

SPELLED = (
    "cases/ct-config-lost",
    "cases/ct-ignore-empty",
    "cases/ct-ignore-gate-up-fused-spelling",
    "cases/ct-ignore-unanchored",
    "fuzz/fuzz-108",
    "fuzz/fuzz-163",
    "fuzz/fuzz-224",
    "published/qwen3.8-27b-dflash2-w4a16-fc16",
    "random/laguna-w8a8-01",
    "rules/dead-target-entry/bad-path-of-a-model",
    "rules/dropped-tensor/bad-dense-and-not-ignored",
    "rules/undeclared-quantization/bad-w4a16",
    "rules/undeclared-quantization/bad-fp8-block",
    "rules/undeclared-quantization/bad-nvfp4",
    "rules/unread-ignore-list/bad-modelopt-file",
    "rules/unread-ignore-list/bad-modelopt-flat",
    "rules/weight-without-scale/good-scale-there",
    "rules/wrong-ignore-entry/bad-fp8-down",
)
"""Cases that a list, a rule or a whole quantization config mends, in whatever words."""

HARMFUL = {
    "cases/ct-format-dense": {"sglang-0.5.23", "vllm-0.33.0"},
    "cases/ct-targets-one-layer": {"sglang-0.5.23"},
}
"""Cases whose mend for one engine would make others lose tensors that they refuse now -> those others."""

BEYOND = (
    "cases/act-gelu",
    "cases/block-zero",
    "cases/ct-dflash2-mxfp4a16_all",
    "cases/ct-dflash2-w8a16_q_only",
    "cases/domino-tensors-plain",
    "cases/missing-codebook",
    "cases/missing-norms",
    "cases/shape-q",
    "cases/target-ids-3",
    "cases/target-ids-empty",
    "cases/target-ids-range",
    "rules/guessed-taps/bad-four-taps",
    "rules/key-against-tensors/bad-layers-3",
    "rules/kernel-limit/bad-tiles",
    "rules/misnamed-tensor/bad-wrapper-prefix",
    "rules/tap-order/bad-repeated",
)
"""Cases where a tensor is lost, or a value that no tensor tells."""


def mended(name: str, scratch: Path, gating: frozenset[str] = NEXT) -> Fix:
    case = Case(FIXTURES / name)
    source = materialize(case.folder, scratch / "draft")
    return fix(Request(str(source), gating, case.conditions))


def verdicts(source: Path, conditions: Conditions) -> dict[str, str]:
    found = audit(Request(str(source), conditions=conditions))
    return {run.engine: found.verdict(run) for run in found.runs}


def check_it_serves(name: str, fixed: Fix, scratch: Path) -> None:
    """The text that is offered, on a disk of its own: audited anew it serves, and no engine is worse off."""
    source = scratch / "draft"
    before = verdicts(source, Case(FIXTURES / name).conditions)
    assert (source / "config.json").read_bytes() == fixed.old
    (source / "config.json").write_bytes(fixed.new)
    after = verdicts(source, Case(FIXTURES / name).conditions)
    assert after["sglang-next"] in ("pass", "warn")
    assert not [engine for engine in ENGINES if after[engine] == "fail" and before[engine] != "fail"]


@pytest.mark.parametrize("name", MENDED)
def test_what_the_tensors_prove(name: str, tmp_path: Path) -> None:
    fixed = mended(name, tmp_path)
    assert (fixed.outcome, fixed.exit_code) == ("mended", 0)
    assert {edit.key: edit.new for edit in fixed.edits} == MENDED[name]
    check_it_serves(name, fixed, tmp_path)


@pytest.mark.parametrize(
    "name",
    ["arch-unknown", "conv-keys-lost", "conv-one-key", "mask-string", "quant-empty", "sliding-disabled"],
)
def test_the_mended_config_is_that_of_the_good_draft(name: str, tmp_path: Path) -> None:
    good = (DENSE / "config.json").read_bytes()
    assert mended(f"cases/{name}", tmp_path).new == good


@pytest.mark.parametrize("name", SPELLED)
def test_quantization_that_can_be_told(name: str, tmp_path: Path) -> None:
    fixed = mended(name, tmp_path)
    assert (fixed.outcome, fixed.exit_code) == ("mended", 0)
    assert {edit.path[0] for edit in fixed.edits} == {"quantization_config"}
    check_it_serves(name, fixed, tmp_path)


def test_a_lost_quantization_config_says_what_the_quantizer_wrote(tmp_path: Path) -> None:
    fixed = mended("cases/ct-config-lost", tmp_path)
    seed = json.loads((FIXTURES / "cases/ct-dflash2-w8a16_seed/config.json").read_text())
    wrote = seed["quantization_config"]["config_groups"]["W8A16"]["weights"]
    told = json.loads(fixed.new)["quantization_config"]
    weights = told["config_groups"]["group_0"]["weights"]
    assert told["format"] == "pack-quantized"
    assert weights == {key: wrote[key] for key in weights}


@pytest.mark.parametrize("name", BEYOND)
def test_what_no_config_mends(name: str, tmp_path: Path) -> None:
    fixed = mended(name, tmp_path)
    assert fixed.outcome in ("no-change", "not-enough")
    assert fixed.exit_code == 1


def test_a_bias_that_the_same_key_builds_is_asked_for(tmp_path: Path) -> None:
    """q, k and v have biases, o has none, and one key builds all: the audit and the repair say the same."""
    fixed = mended("cases/bias-unannounced", tmp_path)
    assert fixed.outcome == "not-enough" and fixed.after is not None
    (left,) = (f for f in fixed.after.findings if f.engine == "sglang-next" and f.severity == "error")
    assert left.subject == "layers.0-1.self_attn.o_proj.bias" and left.hint is not None
    assert "as zeros, which change nothing" in left.hint
    before = (f.hint or "" for f in fixed.before.findings if f.rule == "key-against-tensors")
    assert all("add o_proj.bias to each layer, as zeros, which change nothing" in hint for hint in before)


@pytest.mark.parametrize("name", HARMFUL)
def test_no_change_that_another_engine_would_lose_tensors_over(name: str, tmp_path: Path) -> None:
    fixed = mended(name, tmp_path)
    assert (fixed.outcome, fixed.exit_code) == ("harmful", 1)
    assert {engine for engine, _ in fixed.harms} == HARMFUL[name]
    if "sglang-0.5.23" in HARMFUL[name]:
        assert ("sglang-0.5.23", "drops fc.weight_packed") in fixed.harms


def test_all_engines_are_served_where_all_decide(tmp_path: Path) -> None:
    name = "rules/dropped-tensor/bad-dense-and-not-ignored"
    fixed = mended(name, tmp_path, frozenset(ENGINES))
    assert fixed.outcome == "mended" and fixed.after is not None
    assert {fixed.after.verdict(run) for run in fixed.after.runs} == {"pass"}


def test_nothing_to_mend(tmp_path: Path) -> None:
    fixed = mended("cases/dense-dflash2", tmp_path)
    assert (fixed.outcome, fixed.exit_code, fixed.edits, fixed.diff) == ("nothing-to-mend", 0, (), "")


def test_several_faults_at_once(tmp_path: Path) -> None:
    """One hides the other: the engine stops at the first."""
    source = materialize(FIXTURES / "cases/conv-keys-lost", tmp_path / "draft")
    path = source / "config.json"
    config = json.loads(path.read_text())
    del config["use_sliding_window"], config["dflash_config"]["selector_rank"]
    config |= {"num_attention_heads": 2, "architectures": ["NoSuchDraft"]}
    path.write_text(json.dumps(config, indent=1) + "\n")
    fixed = fix(Request(str(source), NEXT))
    assert fixed.outcome == "mended"
    good = json.loads((DENSE / "config.json").read_text())
    assert json.loads(fixed.new) == good


def test_odd_formatting_stays(tmp_path: Path) -> None:
    source = materialize(FIXTURES / "cases/sliding-disabled", tmp_path / "draft")
    path = source / "config.json"
    config = json.loads(path.read_text())
    config.pop("use_sliding_window", None)
    lines = [f'\t"{key}" :{json.dumps(value)}' for key, value in reversed(config.items())]
    text = '{\r\n\t"_n":"caf\\u00e9 \u202e é\\/",' + "\r\n" + ",\r\n".join(lines) + "\r\n}"
    text = text.replace("1e-06", "1.0E-6").replace("10000000.0", "1e7")
    path.write_bytes(text.encode())
    fixed = fix(Request(str(source), NEXT))
    added = ',\r\n\t"use_sliding_window":true'
    assert fixed.new.decode() == text[: -len("\r\n}")] + added + "\r\n}"
    assert "No newline at end of file" in fixed.diff


def test_a_key_that_stands_twice_is_left_to_its_owner(tmp_path: Path) -> None:
    source = materialize(FIXTURES / "cases/sliding-disabled", tmp_path / "draft")
    path = source / "config.json"
    path.write_text(path.read_text().replace("{", '{"hidden_size": 64,', 1))
    fixed = fix(Request(str(source), NEXT))
    assert (fixed.outcome, fixed.exit_code) == ("not-editable", 1)
    assert fixed.reason is not None and "hidden_size" in fixed.reason


@pytest.mark.parametrize(
    ("name", "gating"),
    [
        ("cases/ct-dflash2-w8a16_seed", frozenset(("sglang-0.5.23",))),
        ("cases/ct-dflash2-w8a16_q_only", NEXT),
        ("cases/ct-dflash1-w8a16_all", frozenset(ENGINES)),
    ],
)
def test_the_recipe_makes_a_draft_that_serves_everywhere(
    name: str, gating: frozenset[str], tmp_path: Path
) -> None:
    """The dense draft, laid out as llm-compressor would write it by the recipe."""
    fixed = mended(name, tmp_path, gating)
    assert fixed.recipe is not None
    said = {key: json.loads(value) for key, value in re.findall(r"^ +(\w+): (.+)$", fixed.recipe.text, re.M)}
    dense = FIXTURES / "cases" / ("dense-dflash1" if "dflash1" in name else "dense-dflash2")
    source = tmp_path / "again"
    shutil.copytree(dense, source)
    tensors = json.loads((dense / "tensors.json").read_text())
    write_zeros(source / "model.safetensors", quantized(tensors, said["ignore"], said["weights"]))
    config = json.loads((dense / "config.json").read_text())
    group = {"targets": said["targets"], "weights": said["weights"], "input_activations": None}
    config["quantization_config"] = {
        "quant_method": "compressed-tensors",
        "format": "pack-quantized",
        "config_groups": {"group_0": group},
        "ignore": said["ignore"],
    }
    (source / "config.json").write_text(json.dumps(config))
    assert verdicts(source, Conditions()) == dict.fromkeys(ENGINES, "pass")


def quantized(tensors: dict[str, Any], ignore: list[str], weights: dict[str, Any]) -> dict[str, Any]:
    """The layout of packed integers in groups for every linear that no entry names."""
    entries = [re.compile(entry.removeprefix("re:")) for entry in ignore]
    found: dict[str, Any] = {}
    for name, (dtype, shape) in tensors.items():
        module = name.removesuffix(".weight")
        linear = name.endswith(".weight") and len(shape) == 2
        if not linear or any(entry.match(module) for entry in entries):
            found[name] = (dtype, shape)
            continue
        rows, columns = shape
        found[f"{module}.weight_packed"] = ("I32", [rows, columns * weights["num_bits"] // 32])
        found[f"{module}.weight_scale"] = ("BF16", [rows, columns // weights["group_size"]])
        found[f"{module}.weight_shape"] = ("I64", [2])
    assert any(name.endswith("_packed") for name in found)
    return found


RECORDED = recorded("mended")


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case.folder.name)
def test_the_real_engine_loads_what_was_mended(case: Case, tmp_path: Path) -> None:
    """Of each mended config there is a record of what the engines themselves made of it."""
    group, _, name = case.folder.name.partition("--")
    (original,) = (path for path in FIXTURES.glob(f"**/{group}/{name}") if path.is_dir())
    fixed = mended(str(original.relative_to(FIXTURES)), tmp_path)
    assert fixed.new == (case.folder / "config.json").read_bytes()
    assert not fails(case.records["sglang-next"])


def test_there_are_records_of_mended_configs() -> None:
    assert len(RECORDED) >= 20


@pytest.mark.parametrize(
    ("name", "taps"),
    [("rules/guessed-taps/bad-four-taps", [1, 4, 7, 10]), ("rules/tap-count/bad-taps-3-of-4", [0, 1, 2, 3])],
)
def test_taps_that_the_other_list_tells(name: str, taps: list[int], tmp_path: Path) -> None:
    """The other list names each by the layer that comes next; one of another length tells nothing."""
    source = materialize(FIXTURES / name, tmp_path / "draft")
    path = source / "config.json"
    config = json.loads(path.read_text())
    following = [layer + 1 for layer in taps]
    for aux, told in ((following, taps), (following[1:], None), ([0, *following[1:]], None)):
        path.write_text(json.dumps({**config, "eagle_aux_hidden_state_layer_ids": aux}))
        fixed = fix(Request(str(source), NEXT))
        assert fixed.outcome == ("mended" if told else "no-change")
        assert [edit.new for edit in fixed.edits] == ([told] if told else [])


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("mended/cases--ct-ignore-unanchored", None),
        ("mended/cases--ct-ignore-unanchored", "compressed_tensors"),
        ("mended/cases--ct-ignore-unanchored", 7),
        ("cases/fp8-block-qkv-kept", None),
        ("cases/fp8-block-qkv-kept", "fp-8"),
        ("cases/modelopt-nvfp4-config", "nvfp4"),
    ],
)
def test_a_lost_quant_method_is_one_line(name: str, wrong: object, tmp_path: Path) -> None:
    """Of a config that serves, the method alone is lost: it comes back, and nothing else changes."""
    source = materialize(FIXTURES / name, tmp_path / "draft")
    path = source / "config.json"
    config = json.loads(path.read_text())
    right = config["quantization_config"].pop("quant_method")
    if wrong is not None:
        config["quantization_config"]["quant_method"] = wrong
    path.write_text(json.dumps(config, indent=1))
    fixed = fix(Request(str(source), NEXT))
    assert [(edit.key, edit.new) for edit in fixed.edits] == [("quantization_config.quant_method", right)]


@pytest.mark.parametrize(
    ("key", "wrong"), [("num_bits", 8), ("group_size", 16), ("strategy", "channel"), ("symmetric", False)]
)
def test_a_wrong_key_of_the_scheme(key: str, wrong: object, tmp_path: Path) -> None:
    """Of a config that serves, one key set otherwise: the repair sets it back, and that key alone."""
    good = FIXTURES / "mended" / "undeclared-quantization--bad-w4a16"
    source = materialize(good, tmp_path / "draft")
    path = source / "config.json"
    config = json.loads(path.read_text())
    weights = config["quantization_config"]["config_groups"]["group_0"]["weights"]
    right, weights[key] = weights[key], wrong
    path.write_text(json.dumps(config, indent=1))
    fixed = fix(Request(str(source), NEXT))
    assert fixed.outcome == "mended"
    assert {edit.path[-1]: edit.new for edit in fixed.edits} == {key: right}


ACTIVATIONS = {"num_bits": 8, "type": "int", "symmetric": True, "strategy": "token", "dynamic": True}


@pytest.mark.parametrize(
    ("name", "path", "wrong"),
    [
        ("mended/undeclared-quantization--bad-w4a16", "config_groups.group_0.input_activations", ACTIVATIONS),
        ("mended/undeclared-quantization--bad-w4a16", "config_groups.group_0.weights.actorder", "group"),
        (
            "cases/ct-dflash2-fp8dyn_seed",
            "sparsity_config",
            {"format": "dense", "sparsity_structure": "2:4", "targets": ["Linear"]},
        ),
    ],
)
def test_what_the_engine_has_no_kernel_for(name: str, path: str, wrong: object, tmp_path: Path) -> None:
    """Of a config that serves, one key asks for what is not stored: it goes, or says nothing."""
    source = materialize(FIXTURES / name, tmp_path / "draft")
    file = source / "config.json"
    config = json.loads(file.read_text())
    *above, key = path.split(".")
    holder = config["quantization_config"]
    for each in above:
        holder = holder[each]
    holder[key] = wrong
    if key == "input_activations":
        config["quantization_config"]["format"] = "int-quantized"
    file.write_text(json.dumps(config, indent=1))
    fixed = fix(Request(str(source), NEXT))
    assert fixed.outcome in ("mended", "harmful")
    told = {edit.key: edit.new for edit in fixed.edits}
    assert told.pop(f"quantization_config.{path}") in (None, ABSENT)
    assert told in ({}, {"quantization_config.format": "pack-quantized"})


GONE = object()

DAMAGED: list[tuple[str, str, object]] = [
    ("cases/dense-dflash2", "model_type", GONE),
    ("cases/dense-dflash2", "model_type", "qwen-3"),
    ("cases/dense-dflash2", "hidden_act", "Silu"),
    ("cases/dense-dflash2", "dtype", "torch.bfloat16x"),
    ("cases/dense-dflash2", "rms_norm_eps", "1e-06"),
    ("cases/dense-dflash2", "attention_bias", "false"),
    ("cases/dense-dflash2", "rope_parameters.rope_type", "defualt"),
    ("cases/dense-dflash2", "layer_types", ["sliding_atention", "sliding_attention"]),
    ("cases/dense-dflash2", "num_hidden_layers", 4),
    ("cases/dense-domino", "dflash_config.pure_draft_prefix_len", GONE),
    ("cases/dense-lilicorr", "dflash_config.lilicorr_hidden_size", 128),
    ("cases/dense-lilicorr", "dflash_config.lilicorr_num_layers", 3),
    ("cases/dense-lilicorr", "dflash_config.lilicorr_mlp_ratio", 4.0),
    ("cases/gptq-all", "quantization_config.bits", 8),
    ("cases/gptq-all", "quantization_config.group_size", 32),
    ("cases/gptq-all", "quantization_config.desc_act", GONE),
    ("cases/gptq-all", "intermediate_size", 512),
    ("cases/modelopt-nvfp4-config", "quantization_config.group_size", 32),
    ("cases/modelopt-nvfp4-config", "quantization_config.quant_algo", GONE),
    ("cases/modelopt-nvfp4-config", "intermediate_size", 512),
    ("cases/ct-dflash2-fp8dyn_seed", "quantization_config.kv_cache_scheme", "fp8"),
]


@pytest.mark.parametrize(("name", "path", "wrong"), DAMAGED)
def test_one_key_of_a_good_config(name: str, path: str, wrong: object, tmp_path: Path) -> None:
    """Lost or set otherwise, it comes back as it was, and nothing else changes."""
    source = materialize(FIXTURES / name, tmp_path / "draft")
    file = source / "config.json"
    config = json.loads(file.read_text())
    *above, key = path.split(".")
    holder = config
    for each in above:
        holder = holder[each]
    right = holder.pop(key)
    if wrong is not GONE:
        holder[key] = wrong
    file.write_text(json.dumps(config, indent=1))
    fixed = fix(Request(str(source), NEXT))
    assert fixed.outcome in ("mended", "harmful") and fixed.after is not None
    # What is null and what is not there are one thing to the engine.
    assert [(edit.key, None if edit.new is ABSENT else edit.new) for edit in fixed.edits] == [(path, right)]


def test_a_block_that_is_lost_where_another_engine_would_lose_by_it(tmp_path: Path) -> None:
    """With the block alone vLLM would load the draft, and cast the layers that it misses in the list."""
    source = materialize(FIXTURES / "cases/fp8-block-all", tmp_path / "draft")
    file = source / "config.json"
    config = json.loads(file.read_text())
    block = config["quantization_config"].pop("weight_block_size")
    file.write_text(json.dumps(config, indent=1))
    fixed = fix(Request(str(source), NEXT))
    assert fixed.outcome == "mended"
    told = {edit.path[-1]: edit.new for edit in fixed.edits}
    assert told.pop("weight_block_size") == block
    (listed,) = told.values()
    assert [entry for entry in listed if not entry.startswith("model.layers.")] == [
        "candidate_selector", "kernel_projection",
    ]  # fmt: skip


@pytest.mark.parametrize("key", ["config_groups", "config_groups.FP8_DYNAMIC"])
def test_groups_that_are_lost_are_told_by_the_tensors(key: str, tmp_path: Path) -> None:
    source = materialize(FIXTURES / "cases/ct-dflash2-fp8dyn_seed", tmp_path / "draft")
    file = source / "config.json"
    config = json.loads(file.read_text())
    own = config["quantization_config"]
    outer, _, inner = key.partition(".")
    lost = own[outer].pop(inner) if inner else own.pop(outer)["FP8_DYNAMIC"]
    file.write_text(json.dumps(config, indent=1))
    fixed = fix(Request(str(source), NEXT))
    assert fixed.outcome in ("mended", "harmful")
    (group,) = json.loads(fixed.new)["quantization_config"]["config_groups"].values()
    assert group["weights"]["strategy"] == lost["weights"]["strategy"]
    assert {edit.path[1] for edit in fixed.edits} <= {"config_groups", "ignore"}


def test_a_gptq_config_that_is_lost(tmp_path: Path) -> None:
    """Bits and groups by the shapes; what no tensor tells is said to be a guess."""
    source = materialize(FIXTURES / "cases/gptq-all", tmp_path / "draft")
    file = source / "config.json"
    config = json.loads(file.read_text())
    lost = config.pop("quantization_config")
    file.write_text(json.dumps(config, indent=1))
    fixed = fix(Request(str(source), NEXT))
    told = {edit.path[-1]: edit.new for edit in fixed.edits}
    assert told == {key: lost[key] for key in ("quant_method", "bits", "group_size", "sym", "desc_act")}
    assert {edit.path[-1] for edit in fixed.edits if edit.doubt} == {"sym", "desc_act"}


def test_a_selector_without_its_top_k(tmp_path: Path) -> None:
    """No tensor tells it: what every published draft has is offered, and said to be that."""
    source = materialize(DENSE, tmp_path / "draft")
    path = source / "config.json"
    config = json.loads(path.read_text())
    del config["dflash_config"]["selector_top_k"]
    path.write_text(json.dumps(config, indent=1))
    fixed = fix(Request(str(source), NEXT))
    assert [(edit.key, edit.new) for edit in fixed.edits] == [("dflash_config.selector_top_k", 16)]
    assert fixed.edits[0].doubt is not None


def test_a_recipe_asks_for_no_scheme_that_is_refused(tmp_path: Path) -> None:
    """MXFP4 is stored and has no scheme; and where no layer is left to quantize there is no recipe."""
    fixed = mended("cases/ct-dflash2-mxfp4a16_all", tmp_path)
    assert fixed.recipe is not None and not fixed.recipe.as_stored
    assert '"type": "int"' in fixed.recipe.text


FOR_VLLM: dict[str, Edits] = {
    "differences/25-gptq": {
        "quantization_config.modules_in_block_to_quantize": [
            "fc", "down_proj", "gate_up_proj", "qkv_proj", "o_proj",
        ],
    },
    "differences/38-own-head-absent": {"has_own_lm_head": ABSENT},
    "published/nemotron-3.5-lightning-dspark": {"dflash_config.attention_sink_bias": True},
    "published/tiny-laguna": {"mlp_layer_types": ["dense", "dense"]},
}  # fmt: skip
"""Case that vLLM alone does not serve -> every edit; `fixtures/differences` has the record of the first."""


@pytest.mark.parametrize("name", FOR_VLLM)
def test_what_vllm_alone_wants(name: str, tmp_path: Path) -> None:
    fixed = mended(name, tmp_path, frozenset({"vllm-0.33.0"}))
    assert fixed.outcome == "mended"
    assert {edit.key: edit.new for edit in fixed.edits} == FOR_VLLM[name]
    check_it_serves(name, fixed, tmp_path)


def test_vllm_loads_a_laguna_draft_whose_layers_are_said_to_be_dense(tmp_path: Path) -> None:
    """The config that is offered is one of which there is a record."""
    case = Case(FIXTURES / "regressions" / "vllm-laguna-said-to-be-dense")
    fixed = mended("published/tiny-laguna", tmp_path, frozenset({"vllm-0.33.0"}))
    assert json.loads(fixed.new) == json.loads((case.folder / "config.json").read_text())
    original = json.loads((FIXTURES / "published" / "tiny-laguna" / "tensors.json").read_text())
    assert case.tensors == original
    assert not fails(case.records["vllm-0.33.0"])


def test_a_laguna_draft_says_its_vocabulary_for_vllm(tmp_path: Path) -> None:
    source = materialize(FIXTURES / "differences" / "10b-laguna-one-qkv", tmp_path)
    config = json.loads((source / "config.json").read_text())
    del config["draft_vocab_size"]
    (source / "config.json").write_text(json.dumps(config))
    fixed = fix(Request(str(source), frozenset({"vllm-0.33.0"})))
    assert {edit.key: edit.new for edit in fixed.edits} == {"draft_vocab_size": config["vocab_size"]}
    assert fixed.outcome == "mended"


def test_every_repair_has_a_line_in_the_docs() -> None:
    page = (FIXTURES.parent / "docs" / "fix.md").read_text()
    assert re.findall(r"^\| `(\w+)` \|", page, re.M) == list(REPAIRS)
    folder = Path(repairs.__file__).parent
    assert {path.stem for path in folder.glob("*.py")} >= set(REPAIRS)
