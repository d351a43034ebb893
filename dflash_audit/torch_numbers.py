"""Numbers of a config as Python and torch calculate with them, or refuse to."""

from typing import Any, Final

from dflash_audit.refusal import Refused

LARGEST: Final = 2**63
"""The first number that no size of a torch tensor can be."""


def number(value: Any, name: str) -> float:
    """A number that is calculated with in Python, where a float comes in sooner or later."""
    if not isinstance(value, int | float):
        raise Refused(f"the rope parameter {name} must be a number, got {value!r}")
    try:
        float(value)
    except OverflowError as error:
        raise Refused(f"the rope parameter {name} is an integer too large for a float") from error
    return value


def scalar(value: Any, name: str) -> float:
    """A number that meets a tensor as it is: torch takes integers of 64 bits."""
    found = number(value, name)
    if isinstance(found, int) and not -LARGEST <= found < 2 * LARGEST:
        raise Refused(f"the rope parameter {name} is an integer of more than 64 bits")
    return found


def positions(length: float) -> None:
    """Refuse a table of so many positions where torch cannot make one."""
    if not 0 <= length < LARGEST:
        raise Refused("the rope parameters ask for a table of more positions than torch can make")
