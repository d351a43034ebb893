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

MULTIMODAL: Final = ("default", "yarn")
"""Types that take `mrope_section`."""


MOST_POSITIONS: Final = 2**63 - 1
"""A length that `torch.arange` still takes."""


def check_rope(config: Config, head_dim: int) -> None:
    """Refuse rotary parameters of which no embedding can be made."""
    positions = config.get("max_position_embeddings")
    if isinstance(positions, int) and positions > MOST_POSITIONS:
        raise Refused("max_position_embeddings is no number of 64 bits")
    parameters: Any = config.get("rope_parameters") or {}
    if not isinstance(parameters, Mapping):
        raise Refused(f"the rope parameters must be an object, got {parameters!r}")
    if any(isinstance(value, Mapping) for value in parameters.values()):
        raise Refused("the rope parameters are nested by layer type, which this draft's class does not read")
    width = _width(parameters, head_dim)
    kind = parameters.get("rope_type", "default")
    if kind not in REQUIRED:
        raise Refused(f"unknown rope type {kind!r}")
    missing = [key for key in REQUIRED[kind] if key not in parameters]
    if missing:
        raise Refused(f"the rope type {kind} needs {missing[0]}")
    if kind == "dynamic" and "alpha" not in parameters and "factor" not in parameters:
        raise Refused("a dynamic rope needs alpha or factor")
    _check_factors(kind, parameters, width)
    sections = parameters.get("mrope_section") if kind in MULTIMODAL else None
    if sections and (not isinstance(sections, list) or sum(sections) != width // 2):
        raise Refused(f"mrope_section {sections} must add up to half the rotary width, {width // 2}")


def _width(parameters: Mapping[str, Any], head_dim: int) -> int:
    """The rotary width: `rope_dim`, else a part of the head."""
    width = parameters.get("rope_dim")
    if width:
        if not isinstance(width, int):
            raise Refused(f"rope_dim must be an integer, got {width!r}")
        return int(width)
    factor = parameters.get("partial_rotary_factor", 1.0)
    if not isinstance(factor, int | float) or not 0.0 < factor <= 1.0:
        raise Refused(f"partial_rotary_factor={factor!r} must be between 0.0 and 1.0")
    return int(head_dim * factor)


def _check_factors(kind: str, parameters: Mapping[str, Any], width: int) -> None:
    if kind == "linear" and not isinstance(parameters["factor"], float | list):
        raise Refused(f"a linear rope needs a factor with a decimal point, got {parameters['factor']!r}")
    if kind == "dynamic" and width == 2:
        raise Refused("a dynamic rope divides by the rotary width less 2, which is 0")
    if kind != "longrope":
        return
    for key in ("short_factor", "long_factor"):
        factors = parameters[key]
        if isinstance(factors, list) and len(factors) not in (1, -(-width // 2)):
            raise Refused(f"{key} has {len(factors)} factors for {-(-width // 2)} frequencies")
