"""Config values as vLLM's constructors take them."""

from collections.abc import Mapping
from typing import Any

from dflash_audit.refusal import Refused

Config = Mapping[str, Any]

MISSING = object()


def nested(config: Config) -> Config:
    """The `dflash_config` object, empty where there is none."""
    value = config.get("dflash_config")
    return value if isinstance(value, Mapping) else {}


def needed(config: Config, key: str) -> Any:
    """The value of `key`; `Refused` where the config has none."""
    if key not in config:
        raise Refused(f"the config has no {key}")
    return config[key]


def integer(config: Config, key: str, default: Any = MISSING) -> int:
    """What `int()` makes of a value, where the engine calls it; `Refused` where Python raises."""
    value = config.get(key, default)
    if value is MISSING:
        raise Refused(f"the config has no {key}")
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise Refused(f"{key} must be an integer, got {value!r}") from error


def size(config: Config, key: str, default: Any = MISSING) -> int:
    """A value that torch is given for a size as it is: `Refused` for anything but a whole number."""
    value = config.get(key, default)
    if value is MISSING:
        raise Refused(f"the config has no {key}")
    if not isinstance(value, int):
        raise Refused(f"{key} must be an integer, got {value!r}")
    return value


def real(config: Config, key: str, default: Any = MISSING) -> float:
    """`float()` of a value; `Refused` where Python raises."""
    value = config.get(key, default)
    if value is MISSING:
        raise Refused(f"the config has no {key}")
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise Refused(f"{key} must be a number, got {value!r}") from error


def truthy(value: Any) -> bool:
    """A value as an `if` takes it."""
    return bool(value)
