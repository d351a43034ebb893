"""What a draft's build takes from its target: depth, width and vocabulary.

Source: vLLM 0.33.0 `model_executor/models/qwen3_dflash.py`, `laguna_dflash.py`.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from dflash_audit.engine_run import Conditions

ASSUMED_LAYERS: Final = 8
"""Where neither a target nor the draft tells; the number only shifts the names that are asked for."""

ASSUMED_WIDTH: Final = 128
ASSUMED_VOCABULARY: Final = 256


class TargetFacts(NamedTuple):
    """Layers, hidden size and vocabulary of the target, and from where each comes."""

    layers: int
    hidden_size: int
    vocab_size: int
    assumed: tuple[str, ...]


def target_facts(draft: Mapping[str, Any], conditions: Conditions) -> TargetFacts:
    """The target's numbers: its own, else the draft's word for them. `draft` is the draft's config.json."""
    target = conditions.target
    inner = draft.get("dflash_config")
    inner = inner if isinstance(inner, Mapping) else {}
    # Where a config of the speculators library has the sizes.
    layer = draft.get("transformer_layer_config")
    layer = layer if isinstance(layer, Mapping) else {}

    def own(key: str) -> int | None:
        value = draft.get(key, inner.get(key, layer.get(key)))
        return int(value) if isinstance(value, int) and value > 0 else None

    assumed = []

    def told(key: str, draft_key: str, default: int) -> int:
        known = getattr(target, key, None)
        if known is not None:
            return int(known)
        said = own(draft_key)
        if said is None:
            assumed.append(f"{key}: {default}, for want of any")
        else:
            assumed.append(f"{key}: {said}, the draft's {draft_key}")
        return default if said is None else said

    return TargetFacts(
        told("num_hidden_layers", "num_target_layers", ASSUMED_LAYERS),
        told("hidden_size", "hidden_size", ASSUMED_WIDTH),
        told("vocab_size", "vocab_size", ASSUMED_VOCABULARY),
        tuple(assumed),
    )
