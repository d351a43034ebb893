"""What the cases of the layout rules cannot hold: a repo of the Hub, folders beside, odd values."""

import copy
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from materialize import materialize, write_zeros
from parity.case import FIXTURES

from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.engines import ENGINES, engine
from dflash_audit.facts import Facts
from dflash_audit.finding import Finding
from dflash_audit.judge import judge
from dflash_audit.refusal import Refusal
from dflash_audit.rules import RULES, finder
from dflash_audit.sources.checkpoint import Checkpoint, Origin
from dflash_audit.sources.disk import read_path

PUBLISHED = FIXTURES / "published"
ODD: tuple[Any, ...] = (None, True, 0, -1, 2.5, "x", [], ["a"], [[1]], {}, {"a": 1}, 10**12)


def draft(folder: Path, scratch: Path) -> Checkpoint:
    return read_path(materialize(folder, scratch / folder.name))


def findings(checkpoint: Checkpoint) -> list[Finding]:
    runs = tuple(engine(name).replay(checkpoint, Conditions()) for name in ENGINES)
    return judge(Facts(checkpoint, runs, frozenset(), Conditions()))[0]


def found(checkpoint: Checkpoint, rule: str) -> list[Finding]:
    return [finding for finding in findings(checkpoint) if finding.rule == rule]


def test_mask_embedding_in_a_repo_is_not_read(tmp_path: Path) -> None:
    local = draft(FIXTURES / "rules/mask-embedding/bad-present", tmp_path)
    remote = replace(local, origin=Origin("hub", "org/draft"))
    assert {f.severity for f in found(local, "mask-embedding")} == {"note"}
    assert {f.severity for f in found(remote, "mask-embedding")} == {"warning"}


@pytest.mark.parametrize(
    ("reason", "mend"),
    [
        ("head_dim must be even, got head_dim=63 for full_attention", "Mend head_dim in config.json"),
        ("unrecognized model: the config has no model_type", "Mend model_type in config.json"),
        ("the longest context is multiplied by factor, which is {'a': 1}", "Mend factor in config.json"),
        (
            "ValidationError: 1 validation error for SpeculativeConfig architectures Input should be a valid"
            " list [type=list_type, input_value='DFlashDraftModel', input_type=str]",
            "Mend architectures in config.json",
        ),
        ("SGLang cannot use the config: unsupported factor *: 'dict' and 'int'", "Mend what the message"),
        ("Unknown quantization method: exl3.", "Name a method that this engine has as quant_method"),
    ],
)
def test_the_key_that_a_refused_config_names(reason: str, mend: str, tmp_path: Path) -> None:
    plain = draft(PUBLISHED / "tiny-dflash", tmp_path)
    config = {"architectures": "DFlashDraftModel", "head_dim": 63, "rope_scaling": {"factor": {"a": 1}}}
    run = EngineRun("vllm@installed", refusal=Refusal("config", reason))
    (told,) = finder("refused-config")(run, replace(plain, config=config))
    assert told.hint is not None
    assert told.hint.startswith(mend)


@pytest.mark.parametrize(
    ("names", "subjects"),
    [
        (("config.json", "dflash/", "model.safetensors"), ["dflash/"]),
        (("DSpark-draft/", "config.json"), ["DSpark-draft/"]),
        (("assets/", "config.json", "dflash.md"), []),
    ],
)
def test_draft_in_a_folder_of_its_target(names: tuple[str, ...], subjects: list[str], tmp_path: Path) -> None:
    plain = draft(PUBLISHED / "tiny-dflash", tmp_path)
    target = replace(plain, names=names, config={**plain.config, "architectures": ["Qwen3ForCausalLM"]})
    assert [f.subject for f in found(target, "not-a-draft")] == subjects
    assert found(replace(plain, names=names), "not-a-draft") == []


@pytest.mark.parametrize(
    ("case", "severity"),
    [
        ("tap-order/bad-repeated", "error"),
        ("tap-order/bad-descending", "warning"),
        ("config-dtype/bad-float16", "warning"),
        ("missing-key/bad-rope-theta", "warning"),
        ("missing-key/bad-rms-norm-eps", "note"),
    ],
)
def test_severity(case: str, severity: str, tmp_path: Path) -> None:
    checkpoint = draft(FIXTURES / "rules" / case, tmp_path)
    assert {f.severity for f in found(checkpoint, case.partition("/")[0])} == {severity}


def test_dtype_that_is_cast_at_the_load_is_a_note(tmp_path: Path) -> None:
    checkpoint = draft(FIXTURES / "cases/dtype-fp32", tmp_path)
    assert {f.severity for f in found(checkpoint, "config-dtype")} == {"note"}


@pytest.mark.parametrize("name", ["tiny-dflash2", "tiny-dspark", "mimo-dflash-sinks"])
def test_no_value_of_a_key_is_too_odd(name: str, tmp_path: Path) -> None:
    checkpoint = draft(PUBLISHED / name, tmp_path)
    for config in odd_configs(checkpoint.config):
        assert {finding.rule for finding in findings(replace(checkpoint, config=config))} <= {*RULES}


def odd_configs(config: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The config with one key at a time set to an odd value, at its top and in its objects."""
    places = [[], *([key] for key, value in config.items() if isinstance(value, dict))]
    for place in places:
        for key in config[place[0]] if place else config:
            for value in ODD:
                changed = copy.deepcopy(config)
                (changed[place[0]] if place else changed)[key] = value
                yield json.loads(json.dumps(changed))


def test_experts_that_have_no_place_are_one_finding(tmp_path: Path) -> None:
    """Of each engine, with every tensor of them."""
    folder = materialize(FIXTURES / "cases/dense-laguna", tmp_path / "draft")
    tensors = json.loads((FIXTURES / "cases/dense-laguna/tensors.json").read_text())
    parts = [f"{part}_proj.weight" for part in ("down", "gate", "up")]
    experts = [f"layers.1.mlp.experts.{number}.{part}" for number in range(40) for part in parts]
    write_zeros(folder / "model.safetensors", tensors | {name: ["BF16", [4, 4]] for name in experts})
    config = json.loads((folder / "config.json").read_text())
    config |= {"draft_vocab_size": 256, "mlp_layer_types": ["dense", "dense"]}
    (folder / "config.json").write_text(json.dumps(config))
    told = [f for f in findings(read_path(folder)) if set(f.subjects) & {*experts}]
    assert {f.rule for f in told} == {"dropped-tensor", "refused-load"}
    assert len(told) == len({f.engine for f in told}) == len(ENGINES)
    for finding in told:
        assert finding.subject == "layers.1.mlp.experts.0-39.{down_proj,gate_proj,up_proj}.weight"
        assert sorted(finding.subjects) == sorted(experts)
