"""The target beside a draft: what is read of it, what is made of it, and what is said of one that is not."""

import json
from pathlib import Path
from typing import Any

import pytest
from materialize import materialize, write_zeros
from report_schema import valid
from test_cli import FIXTURES, report, run

from dflash_audit.auditing import Request, audit
from dflash_audit.errors import Unreadable
from dflash_audit.finding import Finding
from dflash_audit.formats.json_report import document
from dflash_audit.target import Target, read_target

CONFIG = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "num_hidden_layers": 8,
    "hidden_size": 128,
    "vocab_size": 256,
    "dtype": "bfloat16",
}
HOSTILE = "a\n::error::b\x1b[31m<script>|`c`"
DEEP = 40
"""So that two levels each stay below what a JSON file may be nested."""


def folder(at: Path, config: Any = CONFIG, **beside: Any) -> Path:
    """A target's folder: JSON files by their names without an end, and `tensors` of its one weight file."""
    at.mkdir(parents=True)
    (at / "config.json").write_text(config if isinstance(config, str) else json.dumps(config))
    tensors = beside.pop("tensors", None)
    if tensors is not None:
        write_zeros(at / "model.safetensors", tensors)
    for name, content in beside.items():
        (at / f"{name}.json").write_text(json.dumps(content))
    return at


def read(at: Path, config: Any = CONFIG, **beside: Any) -> Target:
    return read_target(str(folder(at, config, **beside)))


@pytest.fixture
def draft(tmp_path: Path) -> str:
    return str(materialize(FIXTURES / "cases" / "dense-dflash2", tmp_path / "draft"))


def found(draft: str, target: Path, rule: str) -> list[Finding]:
    said = audit(Request(draft, target=str(target)))
    valid(document(said))
    return [finding for finding in said.findings if finding.rule == rule]


@pytest.mark.parametrize(
    "nesting",
    [
        ("text_config",),
        ("llm_config",),
        ("language_config",),
        ("thinker_config",),
        ("thinker_config", "text_config"),
    ],
)
def test_numbers_come_from_the_language_part(nesting: tuple[str, ...], tmp_path: Path) -> None:
    config: dict[str, Any] = CONFIG
    for key in reversed(nesting):
        config = {key: config}
    target = read(tmp_path / "t", {"architectures": ["X"], "model_type": "outer", "hidden_size": 7, **config})
    assert (target.hidden_size, target.vocab_size, target.num_hidden_layers) == (128, 256, 8)
    assert (target.model_type, target.architectures) == ("qwen3", ("X",))


def test_an_older_llava_is_read_at_the_top(tmp_path: Path) -> None:
    config = {**CONFIG, "text_config": {"hidden_size": 7}}
    assert read(tmp_path / "a", {**config, "architectures": ["LlavaQwenForCausalLM"]}).hidden_size == 128
    assert (
        read(tmp_path / "b", {**config, "architectures": ["LlavaForConditionalGeneration"]}).hidden_size == 7
    )


@pytest.mark.parametrize("value", [None, "128", 0, -1, 1.5, True, [], {}, 10**40])
def test_what_is_no_size_is_not_told(value: Any, tmp_path: Path) -> None:
    assert read(tmp_path / "t", {**CONFIG, "hidden_size": value}).hidden_size is None


@pytest.mark.parametrize(
    ("config", "beside", "method"),
    [
        ({}, {}, None),
        ({"quantization_config": {"quant_method": "fp8"}}, {}, "fp8"),
        ({"quantization_config": {}}, {}, None),
        ({"compression_config": {"quant_method": "compressed-tensors"}}, {}, "compressed-tensors"),
        ({"text_config": {**CONFIG, "quantization_config": {"quant_method": "awq"}}}, {}, "awq"),
        ({}, {"hf_quant_config": {"quantization": {"quant_algo": "NVFP4"}}}, "NVFP4"),
        ({"quantization_config": {"bits": 4}}, {}, ""),
    ],
)
def test_its_quantization(config: Any, beside: Any, method: str | None, tmp_path: Path) -> None:
    assert read(tmp_path / "t", {**CONFIG, **config}, **beside).quantization == method


def test_of_weights_the_head_and_the_embedding_alone_are_looked_at(tmp_path: Path) -> None:
    at = folder(tmp_path / "t")
    parts = {
        "a.safetensors": {"model.embed_tokens.weight": ("BF16", [256, 128])},
        "b.safetensors": {"model.layers.0.self_attn.q_proj.weight": ("BF16", [128, 128])},
        "c.safetensors": {"lm_head.weight_packed": ("I32", [256, 16]), "model.norm.weight": ("BF16", [128])},
    }
    index = {"weight_map": {tensor: file for file, part in parts.items() for tensor in part}}
    (at / "model.safetensors.index.json").write_text(json.dumps(index))
    for file, part in parts.items():
        write_zeros(at / file, part)
    (at / "b.safetensors").write_bytes(b"no header at all")  # and nothing opens it
    target = read_target(str(at))
    assert [tensor.name for tensor in target.head] == ["lm_head.weight_packed"]
    assert [tensor.name for tensor in target.embedding] == ["model.embed_tokens.weight"]
    assert target.tensors is not None and len(target.tensors) == 2


def test_of_two_modules_one_is_looked_at(tmp_path: Path) -> None:
    """A checkpoint may hold the table under two names that the engine knows: their tensors are not mixed."""
    tensors = {
        "language_model.lm_head.weight": ("BF16", [256, 128]),
        "lm_head.qweight": ("I32", [16, 256]),
        "lm_head.scales": ("F16", [1, 256]),
        "model.layers.8.shared_head.head.weight": ("BF16", [256, 128]),
        "model.layers.8.embed_tokens.weight": ("BF16", [256, 128]),
    }
    target = read(tmp_path / "t", tensors=tensors)
    assert {tensor.name for tensor in target.head} == {"lm_head.qweight", "lm_head.scales"}
    assert target.embedding == ()


def test_a_config_alone_will_do(tmp_path: Path) -> None:
    target = read(tmp_path / "t")
    assert target.tensors is None and target.head == ()


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda at: at / "nowhere", "no-such-source"),
        (lambda at: (at / "empty").mkdir() or at / "empty", "no-config"),
        (lambda at: folder(at / "t", "{"), "bad-config"),
        (lambda at: folder(at / "t", "[]"), "bad-config"),
        (lambda at: folder(at / "t", **{"model.safetensors.index": {}}), "bad-index"),
        (lambda at: folder(at / "t") / "config.json", "no-such-source"),
        (lambda at: "", "no-such-source"),
    ],
)
def test_a_target_that_cannot_be_read(make: Any, kind: str, tmp_path: Path) -> None:
    with pytest.raises(Unreadable) as raised:
        read_target(str(make(tmp_path)))
    assert raised.value.kind == kind
    assert "\n" not in raised.value.message


@pytest.mark.parametrize("command", ["audit", "tree", "fix"])
def test_the_program_says_so_with_exit_code_3(command: str, draft: str, tmp_path: Path) -> None:
    done = run(command, draft, "--target", str(tmp_path / "nowhere"))
    assert done.returncode == 3
    assert done.stderr == f"dflash-audit: {tmp_path}/nowhere: no such folder\n"


def test_a_pair_that_fits(draft: str, tmp_path: Path) -> None:
    at = folder(tmp_path / "t", tensors={"lm_head.weight": ("BF16", [256, 128])})
    said = report(draft, "--target", str(at))
    assert said["summary"]["exit_code"] == 0
    assert said["target"] == {
        "kind": "local",
        "id": str(at),
        "revision": None,
        "commit": None,
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "num_hidden_layers": 8,
        "hidden_size": 128,
        "vocab_size": 256,
        "quantization": None,
        "tensors": [{"name": "lm_head.weight", "shape": [256, 128], "dtype": "BF16"}],
        "bytes_read": said["target"]["bytes_read"],
    }
    assert 0 < said["target"]["bytes_read"] < 1000
    assert f"beside {at} (Qwen3ForCausalLM, dense)" in run(draft, "--target", str(at)).stdout


def test_a_pair_that_does_not_fit(draft: str, tmp_path: Path) -> None:
    at = folder(tmp_path / "t", {**CONFIG, "hidden_size": 160})
    said = report(draft, "--target", str(at))
    assert said["summary"]["exit_code"] == 1
    assert {engine["verdict"] for engine in said["engines"] if engine["gating"]} == {"fail"}
    assert report(draft)["summary"]["exit_code"] == 0


def test_what_was_guessed_is_told_once(tmp_path: Path) -> None:
    """A mask token beyond both the draft's own vocabulary and the target's is one finding."""
    draft = materialize(FIXTURES / "rules" / "mask-token" / "bad-outside", tmp_path / "draft")
    target = folder(tmp_path / "t", {**CONFIG, "vocab_size": 64, "num_hidden_layers": 12})
    [of_engine] = [f for f in found(str(draft), target, "mask-token") if f.engine == "sglang-next"]
    assert of_engine.severity == "error" and "64 rows" in of_engine.message


def test_names_of_a_target_reach_no_format_as_they_are(draft: str, tmp_path: Path) -> None:
    config = {
        **CONFIG,
        "architectures": [HOSTILE],
        "model_type": HOSTILE,
        "quantization_config": {"quant_method": HOSTILE, HOSTILE + "quarot": True},
    }
    tensors = {f"lm_head.{HOSTILE}": ("I32", [16, 256]), "lm_head.qweight": ("I32", [16, 256])}
    at = folder(tmp_path / "t", config, tensors=tensors)
    for form in ("text", "markdown", "github", "html", "junit", "gitlab"):
        said = run(draft, "--target", str(at), "--format", form).stdout
        assert "\x1b" not in said and "\n::error::b" not in said
        assert form != "html" or "<script>|" not in said
    valid(json.loads(run(draft, "--target", str(at), "--json").stdout))


NESTED = json.loads('{"x": [' * DEEP + "{}" + "]}" * DEEP)
NO_DTYPES: list[Any] = [3, 1.5, True, [], ["x"], {}, {"x": 1}, "x"]
NO_ROPES: list[Any] = [10**400, "x", [], {"factor": 10**400}]
ODD: list[tuple[str, Any]] = [
    *((key, value) for key in ("dtype", "torch_dtype") for value in NO_DTYPES),
    *((key, value) for key in ("rope_theta", "rope_scaling") for value in NO_ROPES),
    ("rope_parameters", {"rope_theta": 10**400}),
    ("rope_parameters", {"full_attention": {"rope_theta": [1]}}),
    ("max_position_embeddings", 10**400),
    ("num_loops", 2**39),
    ("num_loops", {}),
    ("architectures", [["x"], {}]),
    ("model_type", ["x"]),
    ("tie_word_embeddings", ["x"]),
    ("quantization_config", ["x"]),
    ("quantization_config", {"quant_method": ["x"]}),
    ("quantization_config", {"deep": NESTED}),
    ("quantization_config", {"transform_config": {"config_groups": {"a": {"apply": [1, {}]}}}}),
    ("text_config", {"dtype": ["x"]}),
]


@pytest.mark.parametrize(("key", "odd"), ODD, ids=lambda value: str(value)[:40])
def test_an_odd_value_of_a_config_stops_no_rule(key: str, odd: Any, draft: str, tmp_path: Path) -> None:
    config = {name: value for name, value in CONFIG.items() if not key.endswith(name)} | {key: odd}
    said = audit(Request(draft, target=str(folder(tmp_path / "t", config))))
    assert said.error is None
    valid(document(said))


def test_engines_that_disagree_over_the_target_do_not_blame_the_layout(tmp_path: Path) -> None:
    """vLLM's class of this target hands hidden states over, and SGLang's does not."""
    draft = materialize(FIXTURES / "cases" / "dense-dflash1", tmp_path / "draft")
    config = CONFIG | {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2"}
    target = folder(tmp_path / "t", config)
    said = audit(Request(str(draft), frozenset(("vllm-0.33.0",)), target=str(target)))
    (told,) = (finding for finding in said.findings if finding.rule == "engines-disagree")
    assert "target-class" in told.message and told.hint is not None
    assert "the target" in told.hint and "change the layout" not in told.hint
    assert told.severity == "warning" and not told.unmended
