"""How a method looks up the keys of its config.

Source: SGLang 0.5.23 `srt/layers/quantization/base_config.py`,
`QuantizationConfig.get_from_keys` and `get_from_keys_or`.
"""

from collections.abc import Mapping
from typing import Any

from dflash_audit.refusal import Refused


def required(config: Mapping[str, Any], *keys: str) -> Any:
    """The value of the first of `keys` that the config has, null included.

    Raises:
        Refused: it has none of them.
    """
    for key in keys:
        if key in config:
            return config[key]
    raise Refused(f"Cannot find any of {list(keys)} in the model's quantization config.")


def optional(config: Mapping[str, Any], *keys: str, default: Any) -> Any:
    """As `required`, with `default` where the config has none of `keys`."""
    return next((config[key] for key in keys if key in config), default)
