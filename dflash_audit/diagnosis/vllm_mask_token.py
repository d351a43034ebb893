"""The token that stands for a drafted one, by the key of the config that vLLM goes by; no rule of its own.

Source: vLLM 0.33.0 `v1/worker/gpu/spec_decode/utils.py`, `get_parallel_drafting_token_id`.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

KEY: Final = "mask_token_id"

OTHERS: Final = ("dspark_noise_token_id", "pard_token", "ptd_token_id")
"""Other keys of it; given at all, they count."""


class Named(NamedTuple):
    """What `key` names; `value` may be anything."""

    key: str
    value: Any

    @property
    def token(self) -> int | None:
        """The token's id, None where vLLM makes none of the value."""
        try:
            return int(self.value)
        except (TypeError, ValueError, OverflowError):
            return None


def named_mask(config: Mapping[str, Any]) -> Named | None:
    """The first key that counts, None where there is none."""
    inner = config.get("dflash_config")
    if isinstance(inner, Mapping) and KEY in inner:
        return Named(KEY, inner[KEY])
    if config.get(KEY) is not None:
        return Named(KEY, config[KEY])
    return next((Named(key, config[key]) for key in OTHERS if key in config), None)
