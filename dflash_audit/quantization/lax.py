"""JSON values as a pydantic model takes them in its default, lax mode.

Source: pydantic 2's conversion table; compressed-tensors 0.18.0 builds its
`QuantizationArgs` so.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from dflash_audit.refusal import Refused

WHOLE: Final = re.compile(r"([+-]?[0-9]+(?:_[0-9]+)*)(?:\.0+)?")
LARGEST: Final = 2.0**63
"""Strings that stand for an integer, and the size from which a float does not."""

TRUE = {"1", "on", "t", "true", "y", "yes"}
FALSE = {"0", "off", "f", "false", "n", "no"}


def integer(value: Any, field: str) -> int:
    """An int, a whole float or a string of digits; `Refused` for anything else."""
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < LARGEST:
        return int(value)
    if isinstance(value, str) and (whole := WHOLE.fullmatch(value.strip())):
        return int(whole[1])
    raise Refused(f"{field} must be an integer, got {value!r}")


def real(value: Any, field: str) -> float:
    """A number or a string of one; `Refused` for anything else."""
    if isinstance(value, int | float | str):
        try:
            return float(value)
        except (ValueError, OverflowError):
            pass
    raise Refused(f"{field} must be a number, got {value!r}")


def boolean(value: Any, field: str) -> bool:
    """A bool, 0 or 1, or one of the words for them; `Refused` for anything else."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float) and value in (0, 1):
        return bool(value)
    if isinstance(value, str) and value.lower() in TRUE | FALSE:
        return value.lower() in TRUE
    raise Refused(f"{field} must be true or false, got {value!r}")


def choice(value: Any, field: str, allowed: frozenset[str]) -> str:
    """A string that, in lower case, is one of `allowed`; `Refused` for anything else."""
    if isinstance(value, str) and value.lower() in allowed:
        return value.lower()
    raise Refused(f"{field} must be one of {', '.join(sorted(allowed))}, got {value!r}")


def text(value: Any, field: str) -> str | None:
    """A string or null; `Refused` for anything else."""
    if value is None or isinstance(value, str):
        return value
    raise Refused(f"{field} must be a string, got {value!r}")


def table(value: Any, field: str) -> Mapping[str, Any]:
    """An object; `Refused` for anything else."""
    if isinstance(value, Mapping):
        return value
    raise Refused(f"{field} must be an object, got {value!r}")
