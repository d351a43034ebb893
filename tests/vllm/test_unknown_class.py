"""A draft whose class vLLM does not know: the profile and the installed vLLM call its family the same."""

import json
from pathlib import Path
from typing import Any

import pytest
from materialize import write_zeros

from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.engines import engine
from dflash_audit.engines.vllm_installed.engine import told
from dflash_audit.refusal import NotModelled, Refusal
from dflash_audit.sources.disk import read_path


@pytest.mark.parametrize(
    ("architectures", "family"),
    [
        (["Other"], "drafts of the class Other"),
        (["Other", "Another"], "drafts of the class Other, Another"),
        (["Other", 1], None),
        ([1], None),
        ([], None),
        ("Other", None),
    ],
)
def test_its_family_is_named_by_its_config(architectures: Any, family: str | None, tmp_path: Path) -> None:
    config = {"architectures": architectures, "model_type": "qwen3", "hidden_size": 8}
    (tmp_path / "config.json").write_text(json.dumps(config))
    write_zeros(tmp_path / "model.safetensors", {"norm.weight": ("BF16", [8])})
    checkpoint, conditions = read_path(tmp_path), Conditions()
    profile = engine("vllm-0.33.0").replay(checkpoint, conditions)
    live = EngineRun("vllm@installed", refusal=Refusal("class", "not supported"))
    told(live, checkpoint, conditions)
    assert (profile.unserved, live.unserved) == (family, family)


@pytest.mark.parametrize("name", ["vllm-0.33.0", "vllm@installed"])
def test_what_a_draft_computes_is_not_known(name: str) -> None:
    with pytest.raises(NotModelled, match="forward pass of vLLM's drafts"):
        engine(name).forward(EngineRun(name))
