"""From a record to a run: the same rules and report work on it as on a profile's."""

import copy
from pathlib import Path
from typing import Any

import pytest
from materialize import write_zeros

from dflash_audit.drops import dropped
from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.engines.installed.engine import Installed
from dflash_audit.engines.installed.reading import read_record
from dflash_audit.engines.sglang_installed.engine import INSTALLED as SGLANG
from dflash_audit.engines.vllm_installed.engine import INSTALLED as VLLM
from dflash_audit.rules import finder
from dflash_audit.sources.disk import read_path


def parameter(
    name: str, shape: list[int], kind: str = "Parameter", dtype: str = "bfloat16"
) -> dict[str, Any]:
    none = dict.fromkeys(("output_dim", "input_dim", "packed_dim", "packed_factor", "tokens"))
    return {"name": name, "shape": shape, "dtype": dtype, "kind": kind, **none}


def module(name: str, module_class: str, *parameters: dict[str, Any], **more: Any) -> dict[str, Any]:
    none = dict.fromkeys(("prefix", "scheme", "linear"))
    return {"name": name, "class": module_class, **none, **more, "parameters": list(parameters)}


QKV = {"inputs": 8, "outputs": [8, 4, 4], "inputs_here": 8, "outputs_here": [8, 4, 4]}
TENSORS: dict[str, tuple[str, list[int]]] = {
    "fc.weight": ("F8_E4M3", [8, 8]),
    "layers.0.self_attn.k_proj.weight": ("BF16", [4, 8]),
    "layers.0.self_attn.q_proj.weight": ("BF16", [8, 8]),
    "lost.weight": ("BF16", [8]),
    "norm.weight": ("BF16", [8]),
}
RECORD: dict[str, Any] = {
    "class": "DFlashDraftModel",
    "quantization": None,
    "skipped": None,
    "stage": None,
    "error": None,
    "at_tensor": None,
    "config": {"hidden_size": 8},
    "act_order": False,
    "packed_modules_mapping": {},
    "flags": [],
    "modules": [
        module("", "DFlashDraftModel"),
        module("fc", "Linear", parameter("weight", [8, 8])),
        module(
            "layers.0.self_attn.qkv_proj",
            "QKVParallelLinear",
            parameter("weight", [16, 8]),
            prefix="qkv_proj",
            scheme="UnquantizedLinearMethod",
            linear=QKV,
        ),
        module("norm", "RMSNorm", parameter("weight", [8])),
    ],
    "reads": [[name, "bfloat16", shape] for name, (_, shape) in TENSORS.items()],
    "fills": [
        [0, "fc.weight", None, "float8_e4m3fn"],
        [1, "layers.0.self_attn.qkv_proj.weight", "k", "bfloat16"],
        [2, "layers.0.self_attn.qkv_proj.weight", "q", "bfloat16"],
        [4, "norm.weight", None, "bfloat16"],
    ],
    "refusals": [],
    "complete": True,
}


def read(folder: Path, /, by: Installed = SGLANG, **changes: Any) -> EngineRun:
    (folder / "config.json").write_text('{"architectures": ["DFlashDraftModel"]}')
    write_zeros(folder / "model.safetensors", TENSORS)
    record = {**copy.deepcopy(RECORD), **changes}
    return read_record(record, by.name, "1.2.3", read_path(folder), Conditions(), by.reading)


def test_a_run_tells_what_was_built_and_loaded(tmp_path: Path) -> None:
    run = read(tmp_path)
    assert (run.engine, run.version, run.model_class) == ("sglang@installed", "1.2.3", "DFlashDraftModel")
    assert run.tree is not None and run.plan is not None
    qkv = run.tree.modules["layers.0.self_attn.qkv_proj"]
    assert qkv.prefix == "qkv_proj" and qkv.linear is not None
    assert qkv.linear.output_sizes == (8, 4, 4)
    assert dict(run.plan.missing()) == {"layers.0.self_attn.qkv_proj.weight": ("v",)}
    assert [tensor.name for tensor in dropped(run)] == ["lost.weight"]
    assert [(r.slot.name, r.took) for r in run.plan.resized()] == [("layers.0.self_attn.qkv_proj.weight", 96)]


@pytest.mark.parametrize(
    ("rule", "subject"),
    [
        ("dropped-tensor", "lost.weight"),
        ("unfilled-parameter", "layers.0.self_attn.qkv_proj.weight"),
        ("lossy-cast", "fc.weight"),
    ],
)
def test_rules_speak_of_it(tmp_path: Path, rule: str, subject: str) -> None:
    (found,) = finder(rule)(read(tmp_path))
    assert found.engine == "sglang@installed"
    assert subject in found.subject


def test_behind_a_refusal_that_stopped_it_nothing_is_missing_or_dropped(tmp_path: Path) -> None:
    stopped: dict[str, Any] = {
        "stage": "load",
        "error": "ValueError: odd",
        "at_tensor": "lost.weight",
        "complete": False,
    }
    run = read(tmp_path, **stopped, refusals=[["ValueError: odd", "lost.weight"]], fills=RECORD["fills"][:1])
    assert run.plan is not None and run.refusal is not None
    assert not run.plan.missing() and not [*dropped(run)]
    (found,) = finder("refused-load")(run)
    assert "ValueError: odd" in found.message
    assert found.subjects == ("lost.weight",)


def test_nor_is_what_came_in_part_when_it_stopped(tmp_path: Path) -> None:
    stopped: dict[str, Any] = {"stage": "load", "error": "ValueError: odd", "at_tensor": None}
    run = read(tmp_path, **stopped, complete=False, refusals=[["ValueError: odd", None]])
    assert run.plan is not None
    assert set(run.plan.filled()) == {
        "fc.weight",
        "layers.0.self_attn.qkv_proj.weight",
        "norm.weight",
    }
    assert not run.plan.missing() and not run.plan.resized()


def test_a_tensor_that_only_the_engine_read_is_told(tmp_path: Path) -> None:
    reads = [*RECORD["reads"], ["hidden.weight", "bfloat16", [8]]]
    run = read(tmp_path, reads=reads)
    assert [tensor.name for tensor in dropped(run)] == ["lost.weight", "hidden.weight"]


@pytest.mark.parametrize(
    ("name", "scheme", "act_order", "missing"),
    [
        ("k_scale", "CompressedTensorsKVCacheMethod", False, False),
        ("input_scale", "ModelOptFp4LinearMethod", False, False),
        ("input_scale", "Fp8LinearMethod", False, True),
        ("g_idx", "GPTQMarlinLinearMethod", False, False),
        ("g_idx", "GPTQMarlinLinearMethod", True, True),
        ("weight_g_idx", "CompressedTensorsWNA16", False, True),
    ],
)
def test_what_has_a_right_value_of_its_own_is_not_missing(
    tmp_path: Path, name: str, scheme: str, act_order: bool, missing: bool
) -> None:
    odd = module("odd", "RowParallelLinear", parameter(name, [1]), scheme=scheme)
    run = read(tmp_path, modules=[*RECORD["modules"], odd], act_order=act_order)
    assert run.plan is not None
    assert (f"odd.{name}" in run.plan.missing()) == missing


@pytest.mark.parametrize(
    ("holder", "name", "dtype", "missing", "unread"),
    [
        ("model", "mask_embedding", "bfloat16", False, False),
        ("", "draft_id_to_target_id", "int64", False, False),
        ("model.embed_tokens", "weight", "bfloat16", False, False),
        ("lm_head", "weight_packed", "int32", False, False),
        ("model.markov_head.markov_w2", "weight", "bfloat16", True, False),
        ("model.layers.0.self_attn.attn", "q_scale", "bfloat16", False, False),
        ("model.layers.0.self_attn.attn", "prob_scale", "bfloat16", False, True),
        ("model.layers.0.self_attn.o_proj", "k_scale", "bfloat16", True, False),
        ("model.fc", "input_scale", "float32", True, False),
        ("model.fc", "input_scale", "bfloat16", False, True),
    ],
)
def test_what_needs_no_filling_in_vllm(
    tmp_path: Path, holder: str, name: str, dtype: str, missing: bool, unread: bool
) -> None:
    odd = module(holder, "Any", parameter(name, [1], dtype=dtype))
    run = read(tmp_path, VLLM, modules=[*RECORD["modules"], odd])
    assert run.plan is not None
    full = f"{holder}.{name}".strip(".")
    assert (full in run.plan.missing(), full in run.plan.missing(unread=True)) == (missing, missing or unread)
