#!/usr/bin/env python3
"""Record the config classes that the audit replays: their fields, defaults and names.

usage: record_hf_configs.py > dflash_audit/hf_config/recorded.json

Run it with the Python of an environment that holds sglang 0.5.23 (and with it
transformers 5.19.0). What a class does with its fields is code, and is replayed
by hand in dflash_audit/hf_config/behaviours.py; this records the data beside it,
for the model types that are listed there.
"""

import dataclasses
import importlib.metadata
import inspect
import json
import sys
import types
import typing
from pathlib import Path
from typing import Any

from sglang.srt.utils.hf_transformers import common
from transformers import PreTrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from dflash_audit.hf_config.behaviours import OWN_CLASSES, TRANSFORMERS_CLASSES

SIMPLE = {
    int: "int",
    float: "float",
    str: "str",
    bool: "bool",
    dict: "dict",
    list: "list",
    tuple: "tuple",
    type(None): "none",
}
PLANS = (
    "base_model_",
    "keys_to_ignore",
    "sub_configs",
    "_auto_class",
    "attribute_map",
    "base_config_key",
    "has_no_defaults",
)


def kind(annotation: Any) -> Any:
    """A field's annotation as field_types.py reads it; a string annotation is never checked."""
    if isinstance(annotation, str) or annotation is Any:
        return "any"
    if annotation is None:
        return "none"
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        # A TypedDict cannot be asked about instances: the engine takes that for a mismatch.
        members = [kind(a) for a in arguments if not typing.is_typeddict(a)]
        return members[0] if len(members) == 1 else ["union", *members]
    if origin is list:
        return ["list", kind(arguments[0])]
    if origin is dict:
        return ["dict", *map(kind, arguments)]
    if origin is tuple:
        return ["tuple"]
    if origin is typing.Literal:
        return ["literal", *arguments]
    return SIMPLE[annotation]


def plain(value: Any) -> Any:
    """A class's attribute as JSON, or a TypeError where it has no JSON."""
    if isinstance(value, set | frozenset | tuple):
        value = sorted(value) if isinstance(value, set | frozenset) else list(value)
    json.dumps(value)
    return value


def default(field: dataclasses.Field[Any]) -> Any:
    if field.default is not dataclasses.MISSING:
        return plain(field.default)
    assert field.default_factory is not dataclasses.MISSING, field.name
    return plain(field.default_factory())


def bounds(field: dataclasses.Field[Any]) -> list[float] | None:
    """Smallest and largest value that a validator beside the type allows."""
    validators = field.metadata.get("validator")
    if not validators:
        return None
    (validator,) = validators if isinstance(validators, list) else [validators]
    cells = dict(
        zip(validator.__code__.co_freevars, (c.cell_contents for c in validator.__closure__), strict=True)
    )
    assert not cells["exclude_min"] and not cells["exclude_max"], field.name
    return [cells["min"], cells["max"]]


def attributes(cls: type) -> dict[str, Any]:
    """The plain class attributes that are no fields, over all classes up to PreTrainedConfig."""
    fields = {f.name for f in dataclasses.fields(cls)}
    found: dict[str, Any] = {}
    for parent in reversed(cls.__mro__):
        if parent is object or (issubclass(PreTrainedConfig, parent) and cls is not PreTrainedConfig):
            continue
        for name, value in vars(parent).items():
            if name in fields or name.startswith("__") or name.startswith(PLANS) or callable(value):
                continue
            if isinstance(value, property | classmethod | staticmethod):
                continue
            try:
                found[name] = plain(value)
            except TypeError:
                continue
    return found


def read_only(cls: type) -> list[str]:
    return sorted(
        n for n in dir(cls) if isinstance(getattr(cls, n, None), property) and getattr(cls, n).fset is None
    )


BASE_FIELDS = {f.name for f in dataclasses.fields(PreTrainedConfig)}
BASE_READ_ONLY = set(read_only(PreTrainedConfig))


def recorded(cls: type) -> dict[str, Any]:
    """One class beyond what every class has."""
    own = [f for f in dataclasses.fields(cls) if f.name not in BASE_FIELDS or cls is PreTrainedConfig]
    entry: dict[str, Any] = {
        "fields": {f.name: [kind(f.type), default(f)] for f in own},
        "bounds": {f.name: b for f in own if (b := bounds(f)) is not None},
        "aliases": cls.attribute_map,  # type: ignore[attr-defined]
        "attributes": attributes(cls),
        "read_only": [n for n in read_only(cls) if n not in BASE_READ_ONLY or cls is PreTrainedConfig],
    }
    # A generated __init__ is the dataclass's and takes the fields; a written one stands in the class's file.
    init = vars(cls).get("__init__")
    if init is not None and init.__code__.co_filename == inspect.getfile(cls) and cls is not PreTrainedConfig:
        parameters = inspect.signature(init).parameters.values()
        entry["parameters"] = {
            p.name: plain(p.default) for p in parameters if p.default is not inspect.Parameter.empty
        }
    return {key: value for key, value in entry.items() if value}


def main() -> None:
    classes = {name: recorded(CONFIG_MAPPING[name]) for name in sorted(TRANSFORMERS_CLASSES)}
    own = {name: recorded(common._CONFIG_REGISTRY[name]) for name in sorted(OWN_CLASSES)}
    methods = [
        n for n in dir(PreTrainedConfig) if callable(getattr(PreTrainedConfig, n)) and not n.startswith("__")
    ]
    document = {
        "source": "transformers {}, huggingface_hub {}, sglang {}".format(
            *(importlib.metadata.version(p) for p in ("transformers", "huggingface_hub", "sglang"))
        ),
        "base": recorded(PreTrainedConfig) | {"methods": methods},
        "transformers": classes,
        "sglang": own,
    }
    lines = json.dumps(document, separators=(",", ":"), allow_nan=False)
    print(lines.replace('},"', '},\n"'))


if __name__ == "__main__":
    main()
