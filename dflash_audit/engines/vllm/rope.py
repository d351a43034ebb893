"""The rotary embedding of a draft: it holds no weights, but its constructor can refuse.

Source: vLLM 0.33.0 `model_executor/layers/rotary_embedding/__init__.py` (`get_rope`).
"""

from collections.abc import Mapping
from typing import Any, Final

from dflash_audit.engines.vllm.fields import Config
from dflash_audit.refusal import Refused

REQUIRED: Final[Mapping[str, tuple[str, ...]]] = {
    "default": (),
    "proportional": (),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"),
    "linear": ("factor",),
    "ntk": ("factor",),
    "dynamic": (),
    "yarn": ("factor", "original_max_position_embeddings"),
    "deepseek_yarn": ("factor", "original_max_position_embeddings"),
    "deepseek_llama_scaling": ("factor", "original_max_position_embeddings"),
    "longrope": ("short_factor", "long_factor", "original_max_position_embeddings"),
}
"""Rope type -> the keys that it cannot do without."""


def check_rope(config: Config, head_dim: int) -> None:
    """Refuse rotary parameters of which no embedding can be made."""
    parameters: Any = config.get("rope_parameters") or {}
    if not isinstance(parameters, Mapping):
        raise Refused(f"the rope parameters must be an object, got {parameters!r}")
    if not parameters.get("rope_dim"):
        factor = parameters.get("partial_rotary_factor", 1.0)
        if not isinstance(factor, int | float) or not 0.0 < factor <= 1.0:
            raise Refused(f"partial_rotary_factor={factor!r} must be between 0.0 and 1.0")
        del head_dim
    kind = parameters.get("rope_type", "default")
    if kind not in REQUIRED:
        raise Refused(f"unknown rope type {kind!r}")
    missing = [key for key in REQUIRED[kind] if key not in parameters]
    if missing:
        raise Refused(f"the rope type {kind} needs {missing[0]}")
    if kind == "dynamic" and "alpha" not in parameters and "factor" not in parameters:
        raise Refused("a dynamic rope needs alpha or factor")
