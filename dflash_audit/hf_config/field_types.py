"""The type checks of a config class's fields.

Source: huggingface_hub 1.33.0 `dataclasses.py` (`type_validator` and the
validators behind it), as transformers 5.19.0's `@strict` config classes run
them whenever a field is set.
"""

from typing import Any

Kind = str | list[Any]
"""A recorded annotation: a name of `_SIMPLE`, "any", or (form, arguments...)."""

_SIMPLE: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (float,),
    "str": (str,),
    "bool": (bool,),
    "dict": (dict,),
    "list": (list,),
    "tuple": (tuple,),
    "none": (type(None),),
}


def fits(value: Any, kind: Kind) -> bool:
    """Whether a field of this kind takes the value; an int is no float, a bool no int."""
    if isinstance(kind, str):
        return kind == "any" or _fits_simple(value, kind)
    form, *arguments = kind
    if form == "union":
        return any(fits(value, member) for member in arguments)
    if form == "list":
        return isinstance(value, list) and all(fits(item, arguments[0]) for item in value)
    if form == "dict":
        key, content = arguments
        return isinstance(value, dict) and all(fits(k, key) and fits(v, content) for k, v in value.items())
    if form == "literal":
        return any(type(value) is type(choice) and value == choice for choice in arguments)
    if form == "tuple":
        return isinstance(value, tuple)
    raise AssertionError(f"recorded kind {kind!r}")


def _fits_simple(value: Any, kind: str) -> bool:
    if kind == "int" and isinstance(value, bool):
        return False
    return isinstance(value, _SIMPLE[kind])
