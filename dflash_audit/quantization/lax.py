"""JSON values as a pydantic model takes them in its default, lax mode.

Source: pydantic 2's conversion table; compressed-tensors 0.18.0 builds its
`QuantizationArgs` so.
"""

from typing import Any

from dflash_audit.refusal import Refused

TRUE = {"1", "on", "t", "true", "y", "yes"}
FALSE = {"0", "off", "f", "false", "n", "no"}


def integer(value: Any, field: str) -> int:
    """An int, a whole float or a string of digits; `Refused` for anything else."""
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            pass
    raise Refused(f"{field} must be an integer, got {value!r}")


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
