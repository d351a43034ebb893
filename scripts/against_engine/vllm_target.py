"""The target that a draft is served beside, for vLLM, which makes no draft without one."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dflash_audit.engines.vllm_installed.child.target import target_config


def fitting_config(draft: Mapping[str, Any], own: Mapping[str, Any], ranks: int) -> dict[str, Any]:
    """The config of a small Qwen3 that fits a draft of this config.json, and its ranks.

    It has the draft's width and vocabulary, and as many layers as the draft says
    that its target has; 128, 256 and 8 where it says nothing of use, which are the
    numbers that the audit assumes. `own` are those of a case's target.json.
    """
    inner, layer = (table(draft, key) for key in ("dflash_config", "transformer_layer_config"))

    def said(key: str, default: int) -> int:
        value = draft.get(key, inner.get(key, layer.get(key)))
        return value if isinstance(value, int) and value > 0 else default

    numbers = {
        "hidden_size": said("hidden_size", 128),
        "num_hidden_layers": said("num_target_layers", 8),
        "vocab_size": said("vocab_size", 256),
    }
    return target_config({**numbers, **own}, ranks)


def table(config: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The object under a key, an empty one for anything else."""
    value = config.get(key)
    return value if isinstance(value, dict) else {}


def write_target(folder: Path, config: Mapping[str, Any]) -> Path:
    """Write the target's folder: its config is all that is looked at of it."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    return folder
