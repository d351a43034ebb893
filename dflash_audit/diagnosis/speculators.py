"""Configs of the speculators library, by the keys that it alone writes; no rule of its own."""

from collections.abc import Mapping
from typing import Any, Final

LAYER: Final = "transformer_layer_config"
MARKS: Final = ("speculators_model_type", "speculators_config", LAYER)


def marks(config: Mapping[str, Any]) -> list[str]:
    """The keys of config.json that only speculators writes."""
    return [key for key in MARKS if config.get(key) is not None]
