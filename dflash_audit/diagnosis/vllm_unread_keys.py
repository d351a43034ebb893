"""The keys that vLLM does not read, and what that changes; no rule of its own.

Source: vLLM 0.33.0 `model_executor/models/qwen3_dflash.py` and the drafts beside it, searched for each key.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dflash_audit.engine_run import EngineRun

OTHER_ENGINE: Final = "No key of this engine says the same: name the engine that reads it in the model card."


def unread(run: EngineRun) -> Iterator[tuple[str, str, str, str]]:
    """Key, what it means, what follows, and what to do, of each that another engine reads."""
    config: Mapping[str, Any] = run.config or {}
    if run.plan is None or run.refusal is not None:
        return
    if config.get("use_gemma_norm"):
        yield (
            "use_gemma_norm",
            "by which norms multiply by one more than their weight",
            "each norm of the draft multiplies by its weight alone",
            OTHER_ENGINE,
        )
    neox = config.get("rope_is_neox_style")
    plain = run.model_class != "DFlashLagunaForCausalLM"
    if plain and neox is not None and bool(neox) is not bool(config.get("is_neox_style", True)):
        yield (
            "rope_is_neox_style",
            "which says how the pairs of a head are rotated",
            f"they are rotated as is_neox_style {str(not neox).lower()} says",
            f"Write is_neox_style: {str(bool(neox)).lower()} beside it.",
        )
