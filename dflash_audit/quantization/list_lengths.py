"""How long a list of a quantization config may be to be replayed."""

from collections.abc import Mapping
from typing import Any, Final

from dflash_audit.refusal import NotModelled

MOST_ENTRIES: Final = 20_000
"""Longest list of layers that is replayed: each layer of the draft is looked up in it entry by entry."""


def refuse_long_lists(config: Mapping[str, Any]) -> None:
    """Raise `NotModelled` where a list or an object in the config has more entries than are looked up."""
    longest = _longest(config)
    if longest > MOST_ENTRIES:
        raise NotModelled(f"a quantization config with {longest} entries in one list is not replayed")


def _longest(value: Any) -> int:
    """Most entries of a list or an object, the value itself or one in it."""
    if not isinstance(value, list | Mapping):
        return 0
    inner = value.values() if isinstance(value, Mapping) else value
    return max(len(value), max(map(_longest, inner), default=0))
