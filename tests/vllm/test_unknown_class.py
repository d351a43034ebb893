"""A draft whose class vLLM does not know: the profile and the installed vLLM call its family the same."""

import json
from pathlib import Path
from typing import Any

import pytest
from materialize import materialize, write_zeros
from parity.case import FIXTURES

from dflash_audit.auditing import Request, audit
from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.engines import engine
from dflash_audit.engines.sglang.known_architectures import KNOWN
from dflash_audit.engines.vllm import architectures
from dflash_audit.engines.vllm.unserved import SGLANG_ALONE
from dflash_audit.engines.vllm_installed.engine import told
from dflash_audit.refusal import NotModelled, Refusal
from dflash_audit.sources.disk import read_path


@pytest.mark.parametrize(
    ("architectures", "family"),
    [
        (["MiniMaxDFlash2DraftModel"], "drafts of the class MiniMaxDFlash2DraftModel"),
        (["LingDSparkModel"], "drafts of the class LingDSparkModel"),
        (["Other"], None),
        (["Other", 1], None),
        ([1], None),
        ([], None),
        ("MiniMaxDFlash2DraftModel", None),
    ],
)
def test_its_family_is_one_that_sglang_has(architectures: Any, family: str | None, tmp_path: Path) -> None:
    config = {"architectures": architectures, "model_type": "qwen3", "hidden_size": 8}
    (tmp_path / "config.json").write_text(json.dumps(config))
    write_zeros(tmp_path / "model.safetensors", {"norm.weight": ("BF16", [8])})
    checkpoint, conditions = read_path(tmp_path), Conditions()
    profile = engine("vllm-0.33.0").replay(checkpoint, conditions)
    live = EngineRun("vllm@installed", refusal=Refusal("class", "not supported"))
    told(live, checkpoint, conditions)
    assert (profile.unserved, live.unserved) == (family, family)
    assert profile.served_by == live.served_by == (family and "SGLang")


@pytest.mark.parametrize("name", sorted(SGLANG_ALONE))
def test_what_sglang_has_alone(name: str) -> None:
    assert name in KNOWN
    assert name not in architectures.CLASSES.keys() | architectures.NOT_REPLAYED


def test_no_engine_serves_an_activation_that_none_has(tmp_path: Path) -> None:
    """No engine is named that would refuse the draft as well."""
    config = json.loads((FIXTURES / "cases/dense-dflash1/config.json").read_text()) | {"hidden_act": "relu"}
    materialize(FIXTURES / "cases/dense-dflash1", tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(config))
    found = [f for f in audit(Request(str(tmp_path))).findings if f.engine == "vllm-0.33.0"]
    hints = [f.hint for f in found if f.rule == "refused-build"]
    assert hints and all("nor does another engine" in (hint or "") for hint in hints)


@pytest.mark.parametrize("name", ["vllm-0.33.0", "vllm@installed"])
def test_what_a_draft_computes_is_not_known(name: str) -> None:
    with pytest.raises(NotModelled, match="forward pass of vLLM's drafts"):
        engine(name).forward(EngineRun(name))
