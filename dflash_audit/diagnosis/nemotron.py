"""Which condition of the Nemotron 3.5 layout a draft's config fails, if it is but one.

Source: SGLang 0.5.23 `srt/speculative/dflash_utils.py`, `is_nemotron_35_draft_config`.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dflash_audit.engines.sglang.dflash_config import is_nemotron_35, nested
from dflash_audit.refusal import Refused

ARCHITECTURES: Final = ("DFlashDraftModel", "Qwen3DSparkModel")
ALGORITHM: Final = "W4A16_NVFP4"


def near_miss(config: Mapping[str, Any]) -> tuple[str, str] | None:
    """The one key that fails, and the value wanted; None for a Nemotron draft and for quite another."""
    missed = [(key, wanted) for key, wanted, holds in _conditions(config) if not holds]
    return missed[0] if len(missed) == 1 and not _recognised(config) else None


def _recognised(config: Mapping[str, Any]) -> bool:
    """Whether the engine takes it for one, or stops as it looks."""
    try:
        return is_nemotron_35(config)
    except Refused:
        return True


def _conditions(config: Mapping[str, Any]) -> Iterator[tuple[str, str, bool]]:
    """(key, the value wanted, whether it holds) of each condition."""
    inner = nested(config)
    quantization = config.get("quantization_config")
    algorithm = quantization.get("quant_algo") if isinstance(quantization, Mapping) else None
    ids = inner.get("target_layer_ids", config.get("target_layer_ids"))
    anchor = inner.get("sample_from_anchor", config.get("sample_from_anchor", True))
    named = config.get("architectures")
    known = isinstance(named, list) and any(name in named for name in ARCHITECTURES)
    yield "architectures", " or ".join(ARCHITECTURES), known
    yield "has_embed_tokens", "true", bool(config.get("has_embed_tokens", False))
    yield "has_lm_head", "false", not config.get("has_lm_head", False)
    yield "quantization_config.quant_algo", ALGORITHM, algorithm == ALGORITHM
    yield "sample_from_anchor", "false", anchor is False
    aux = config.get("eagle_aux_hidden_state_layer_ids")
    wanted = _shifted(ids)
    yield (
        "eagle_aux_hidden_state_layer_ids",
        str(wanted or "the target_layer_ids, each plus one"),
        wanted is not None and aux == wanted,
    )


def _shifted(ids: Any) -> list[int] | None:
    """The second list that goes with `target_layer_ids`."""
    if not isinstance(ids, list) or not ids or not all(isinstance(layer, int) for layer in ids):
        return None
    return [layer + 1 for layer in ids]
