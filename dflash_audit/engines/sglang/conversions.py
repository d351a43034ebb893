"""Config values as the engine's own `int()` and `float()` take them."""

from collections.abc import Callable, Mapping
from typing import Any

from dflash_audit.refusal import Refused
from dflash_audit.torch_numbers import LARGEST

Config = Mapping[str, Any]


def whole(value: Any, field: str) -> int:
    """`int(value)` of any JSON value; `Refused` where Python raises."""
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise Refused(f"{field} must be an integer, got {value!r}") from error


def integer(value: Any, field: str) -> int:
    """As `whole`, of what becomes a size: `Refused` too where torch raises on so large a one."""
    number = whole(value, field)
    if abs(number) >= LARGEST:
        raise Refused(f"{field} must be less than 2**63, got {value!r}")
    return number


def real(value: Any, field: str) -> float:
    """`float(value)` of any JSON value; `Refused` where Python raises."""
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise Refused(f"{field} must be a number, got {value!r}") from error
    except OverflowError as error:
        raise Refused(f"{field} is an integer too large for a float") from error


def optional_integer(
    value: Any, field: str, least: int, read: Callable[[Any, str], int] = integer
) -> int | None:
    """None, or an integer of at least `least`."""
    if value is None:
        return None
    number = read(value, field)
    if number < least:
        raise Refused(f"{field} must be at least {least}, got {number}")
    return number


def required(config: Config, key: str) -> Any:
    """The value of `key`; `Refused` where the config has none."""
    if key not in config:
        raise Refused(f"the config has no {key}")
    return config[key]
