"""The config as the engine sees it, held against what the real engine made of the same JSON."""

import json
from pathlib import Path
from typing import Any

import pytest

from dflash_audit.engines.sglang.model_config import derive
from dflash_audit.hf_config import as_engine_sees, decoder_part, reads_params_json
from dflash_audit.refusal import NotModelled, Refused

DOCUMENT: dict[str, Any] = json.loads(Path(__file__).with_name("cases.json").read_text())


def config_of(case: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in {**DOCUMENT["base"], **case["set"]}.items() if k not in case["drop"]}


def name_of(case: dict[str, Any]) -> str:
    return json.dumps({**case["set"], **{key: "-" for key in case["drop"]}})[:90]


def exact(value: Any) -> str:
    """Told apart: 1, 1.0 and true."""
    return json.dumps(value, sort_keys=True)


@pytest.mark.parametrize("case", [c for c in DOCUMENT["cases"] if "refusal" not in c], ids=name_of)
def test_attributes(case: dict[str, Any]) -> None:
    config = config_of(case)
    seen = derive(as_engine_sees(config))
    assert {name: exact(seen[name]) for name in case["attributes"]} == {
        name: exact(value) for name, value in case["attributes"].items()
    }
    kept = set(config) - set(case["attributes"]) - set(case["missing"]) - {"text_config", "llm_config"}
    watched = kept & set(DOCUMENT["base"])
    assert {name: exact(seen[name]) for name in watched} == {name: exact(config[name]) for name in watched}
    assert not set(case["missing"]) & set(seen)


@pytest.mark.parametrize("case", [c for c in DOCUMENT["cases"] if "refusal" in c], ids=name_of)
def test_refusals(case: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        derive(as_engine_sees(config_of(case)))


def test_the_json_is_left_unchanged() -> None:
    config = {**DOCUMENT["base"], "text_config": {**DOCUMENT["base"], "architectures": None}}
    before = json.dumps(config)
    seen = as_engine_sees(config)
    made = json.dumps(seen)
    derive(seen)
    assert (json.dumps(config), json.dumps(seen)) == (before, made)


@pytest.mark.parametrize(
    "changes",
    [
        {"model_type": "bert"},
        {"model_type": "kimi_k3"},
        {"per_layer_config": {"0": {"head_dim": 32}}},
        {"to_dict": 1},
        {"architectures": ["DeepseekV3ForCausalLM"]},
    ],
    ids=str,
)
def test_known_to_the_engine_and_not_replayed(changes: dict[str, Any]) -> None:
    with pytest.raises(NotModelled):
        derive(as_engine_sees({**DOCUMENT["base"], **changes}))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("org/Mistral-Small-4-DFlash2", True),
        ("/models/mistral-eagle", True),
        ("org/Mistral-7B-DFlash", False),
        ("org/Qwen3-8B-eagle", False),
    ],
)
def test_names_that_are_read_from_params_json(name: str, expected: bool) -> None:
    assert reads_params_json(name) is expected


def test_decoder_part() -> None:
    seen = as_engine_sees(DOCUMENT["base"])
    assert decoder_part(seen) is seen
    assert decoder_part({**seen, "decoder": {"is_causal": False}}) == {"is_causal": False}
    with pytest.raises(Refused, match="text_encoder, decoder"):
        decoder_part({**seen, "text_encoder": {}, "decoder": {}})
