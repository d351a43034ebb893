"""Families of drafts that vLLM has no code for, under whatever names their tensors come.

Source: vLLM 0.33.0 `model_executor/models/qwen3_dflash.py`, `qwen3_dspark.py` (a vanilla Markov
head alone) and `qwen2.py` (`Qwen2MLP` takes silu alone).
"""

from collections.abc import Mapping
from typing import Any

from dflash_audit.engines.vllm.fields import nested


def family(config: Mapping[str, Any], model_class: str) -> str | None:
    """What of a draft the engine has nothing for, None where it has all of it."""
    inner = nested(config)
    projector = inner.get("projector_type", config.get("projector_type"))
    if projector == "domino":
        return "drafts with a Domino projector"
    kind = config.get("markov_head_type")
    if "DSpark" in model_class and isinstance(kind, str) and kind.lower() != "vanilla":
        return f"DSpark drafts with a Markov head of type {kind}"
    activation = config.get("hidden_act")
    if isinstance(activation, str) and activation != "silu":
        return f"drafts with the activation {activation}"
    return None
