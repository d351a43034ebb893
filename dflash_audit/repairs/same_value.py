"""A value in another form than the engine takes: a number or a list in quotes, a null that says nothing.

What the config says stays the same.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from dflash_audit.diagnosis.ignore_lists import LIST_KEYS
from dflash_audit.facts import Facts
from dflash_audit.repairs.edit import ABSENT, Edit, Proposal

NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]{0,17})")
REAL: Final = re.compile(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,20})?([eE][-+]?[0-9]{1,2})?")
BOOLEANS: Final = {"true": True, "false": False}
NOT_GUESSED: Final = ("rope_theta", "rms_norm_eps", "hidden_act", "vocab_size", "sliding_window")
"""Keys whose default is no draft's: a null of one says that something was lost."""

LISTS: Final = (*LIST_KEYS, "targets", "architectures")
"""Keys that hold a list of names."""

DEEPEST: Final = 10
"""No key that an engine reads lies deeper."""

ROPES: Final = ("rope_parameters", "rope_scaling")
QUANTIZATION: Final = ("quantization_config", "compression_config")


def propose(facts: Facts) -> Iterator[Proposal]:
    """An edit for each value that has another form; a replay shows which one an engine objects to."""
    for path, value in _values(facts.checkpoint.config, ()):
        told = _otherwise(path, value)
        if told is not None:
            new, why = told
            yield (Edit(path, value, new, why),)


def _otherwise(path: tuple[str, ...], value: Any) -> tuple[Any, str] | None:
    """The value in another form, and why."""
    if isinstance(value, str) and path[-1] in LISTS:
        return [value], "The engine takes a list of names, and this is one name."
    if isinstance(value, str) and NUMBER.fullmatch(value):
        return int(value), "The engine takes a number, and this is one in quotes."
    if isinstance(value, str) and REAL.fullmatch(value):
        return float(value), "The engine takes a number, and this is one in quotes."
    if isinstance(value, str) and value.lower() in BOOLEANS:
        return BOOLEANS[value.lower()], "The engine takes true or false, and this is one in quotes."
    if type(value) is int and path[0] in ROPES:
        return float(value), "The engine takes a number with a decimal point, and this is one without."
    if value is None and path[-1] not in (*NOT_GUESSED, *QUANTIZATION):
        return ABSENT, "The engine takes no null here; without the key it takes its default."
    return None


def _values(holder: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every value that is no object, with the keys down to it."""
    for key, value in holder.items():
        if isinstance(value, Mapping) and len(path) < DEEPEST:
            yield from _values(value, (*path, key))
        else:
            yield (*path, key), value
