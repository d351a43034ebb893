"""A draft beside the target that vLLM serves it with: what is handed over, and where nothing is said."""

import json
from pathlib import Path
from typing import Any

import pytest
from materialize import materialize
from test_cli import FIXTURES

from dflash_audit.diagnosis.vllm_pair import Pair, read_vllm_pair
from dflash_audit.engine_run import Conditions
from dflash_audit.engines import engine
from dflash_audit.engines.vllm import target_classes
from dflash_audit.sources.disk import read_path
from dflash_audit.target import read_target

SPECIAL = (
    target_classes.WITHOUT_INNER,
    target_classes.SILENT,
    target_classes.COUNTED_ELSEWHERE,
    target_classes.LAST_LAYER_LOST,
    target_classes.EMBEDDING_LOST,
    target_classes.EMBEDDING_STOPS,
    target_classes.EMBEDDING_UNKNOWN,
)


def pair(
    scratch: Path, architecture: str, asked: list[int], live: tuple[str, str] | None = None, **numbers: int
) -> Pair:
    """A dense draft that asks for `asked`, as vLLM counts, beside a target; of the engine that is `live`."""
    draft = materialize(FIXTURES / "differences" / "24-aux-layers-of-eagle", scratch / "draft")
    config = json.loads((draft / "config.json").read_text())
    config["eagle_aux_hidden_state_layer_ids"] = asked
    (draft / "config.json").write_text(json.dumps(config))
    (scratch / "target").mkdir()
    target: dict[str, Any] = {"architectures": [architecture], "num_hidden_layers": 8, "hidden_size": 128}
    (scratch / "target" / "config.json").write_text(json.dumps(target | numbers))
    conditions = Conditions(target=read_target(str(scratch / "target")))
    checkpoint = read_path(draft)
    run = engine("vllm-0.33.0").replay(checkpoint, conditions)
    if live is not None:
        run.engine, run.version = live
    found = read_vllm_pair(run, checkpoint, conditions)
    assert found is not None
    return found


def test_each_name_is_in_one_table() -> None:
    assert not target_classes.EAGLE3 & target_classes.WITHOUT
    for names in SPECIAL:
        assert names <= target_classes.EAGLE3


@pytest.mark.parametrize(
    ("architecture", "asked", "handed", "fits"),
    [
        ("Qwen3ForCausalLM", [2, 8], [2, 8], True),
        ("Qwen3ForCausalLM", [8, 2], [2, 8], True),
        ("Qwen3ForCausalLM", [0, 4], [0, 4], True),
        ("Qwen3ForCausalLM", [4, 9], [4], False),
        ("Qwen3ForCausalLM", [4, -1], [4], False),
        ("Qwen3ForCausalLM", [4, 4], [4], False),
        ("GlmMoeDsaForCausalLM", [2, 8], [2], False),
        ("GlmMoeDsaForCausalLM", [0, 7], [0, 7], True),
        ("DeepseekV4ForCausalLM", [0, 8], [8], False),
        ("DeepseekV3ForCausalLM", [2, 8], [2, 8], True),
    ],
)
def test_what_a_target_hands_over(
    architecture: str, asked: list[int], handed: list[int], fits: bool, tmp_path: Path
) -> None:
    found = pair(tmp_path, architecture, asked)
    assert (found.handed_over, found.fits) == (handed, fits)


@pytest.mark.parametrize(
    ("architecture", "asked"),
    [
        ("NobodysForCausalLM", [2, 9]),
        ("SmolLM3ForCausalLM", [2, 9]),
        ("Glm4MoeForCausalLM", [2, 9]),
        ("MiMoForCausalLM", [2, 9]),
        ("Exaone4_5_ForConditionalGeneration", [2, 9]),
        ("NemotronHPuzzleForCausalLM", [2, 9]),
        ("DeepseekV3ForCausalLM", [0, 9]),
        ("DeepseekV41ForCausalLM", [0, 9]),
    ],
)
def test_of_what_nothing_is_said(architecture: str, asked: list[int], tmp_path: Path) -> None:
    found = pair(tmp_path, architecture, asked)
    assert (found.handed_over, found.fits) == (None, None)


@pytest.mark.parametrize(("version", "known"), [("0.33.0", True), ("0.34.0", False)])
def test_an_installed_one_of_another_version_is_not_known(version: str, known: bool, tmp_path: Path) -> None:
    found = pair(tmp_path, "Qwen3ForCausalLM", [2, 9], ("vllm@installed", version))
    assert (found.architecture is not None, found.fits is not None) == (known, known)


def test_widths_that_make_up_for_each_other_fit(tmp_path: Path) -> None:
    """vLLM compares the whole alone: one feature of 256 for two of 128."""
    assert pair(tmp_path, "Qwen3ForCausalLM", [2, 9], hidden_size=256).fits
