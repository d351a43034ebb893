"""The rotary embedding of a draft: it holds no weights, but its constructor can refuse.

Source: SGLang 0.5.23 `srt/models/dflash.py` (`DFlashAttention`),
`srt/utils/hf_transformers/common.py` (`get_rope_config`) and `get_rope` in
`srt/layers/rotary_embedding/factory.py`.
"""

from collections.abc import Mapping
from typing import Final

from dflash_audit.engines.sglang.conversions import Config, integer, real
from dflash_audit.refusal import Refused

TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    "default": (),
    "linear": (),
    "dynamic": (),
    "yarn": (),
    "deepseek_yarn": (),
    "llama3": (),
    "longrope": ("short_factor", "long_factor"),
    "proportional": (),
}
"""rope_type -> the keys that it cannot do without."""


def check_rope(config: Config) -> None:
    """Refuse a rope that the attention cannot be built with.

    Raises:
        Refused: a factor or size is no number, or the type is unknown or lacks a key.
    """
    real(config.get("partial_rotary_factor", 1.0), "partial_rotary_factor")
    integer(config.get("max_position_embeddings", 32768), "max_position_embeddings")
    scaling = config.get("rope_parameters")
    if scaling is None:
        scaling = config.get("rope_scaling")
    if scaling is None:
        return
    if not isinstance(scaling, Mapping):
        raise Refused(f"the rope parameters must be an object, got {scaling!r}")
    if "rope_dim" in scaling:
        integer(scaling["rope_dim"], "rope_dim")
    kind = scaling.get("rope_type", scaling.get("type"))
    if not isinstance(kind, str) or kind not in TYPES:
        raise Refused(f"the rope type {kind!r} is not known")
    for key in TYPES[kind]:
        if key not in scaling:
            raise Refused(f"the rope type {kind} needs {key}")
