"""A config object while a class makes it: attributes, aliases, properties, type checks.

Source: transformers 5.19.0 `configuration_utils.py`, `PreTrainedConfig`.
"""

import copy
from collections.abc import Mapping
from typing import Any, Final

from dflash_audit.hf_config.classes import ClassFacts, Field
from dflash_audit.hf_config.field_types import fits
from dflash_audit.hf_config.replay import replayed
from dflash_audit.refusal import NotModelled, Refused

MISSING: Final = object()
"""What `get` returns where the engine would find no attribute."""

RENAMED: Final = {"rope_scaling": "rope_parameters", "torch_dtype": "dtype"}
"""Properties that stand for another attribute."""


class Attributes(dict[str, Any]):
    """The attributes of a finished config object, to be told from a JSON object."""


class ConfigObject:
    """One config object: `values` are its own attributes, `extra` the keys that are no fields.

    `aside` are keys that a class keeps back from the common part of the making.
    """

    __slots__ = ("aside", "extra", "facts", "values")

    def __init__(self, facts: ClassFacts, given: Mapping[str, Any]) -> None:
        self.facts = facts
        self.values: dict[str, Any] = {}
        self.aside: dict[str, Any] = {}
        for name, field in facts.fields.items():
            self.set(name, given[name] if name in given else copy.deepcopy(field.default))
        self.extra = {name: value for name, value in given.items() if name not in facts.fields}

    def get(self, name: str, default: Any = MISSING) -> Any:
        """The attribute as `getattr` finds it on the object or its class."""
        name = self.facts.aliases.get(name, name)
        name = RENAMED.get(name, name)
        if name in self.values:
            return self.values[name]
        return self.facts.attributes.get(name, default)

    def need(self, name: str) -> Any:
        """The attribute; refused where it is missing."""
        value = self.get(name)
        if value is MISSING:
            raise Refused(f"the config has no attribute {name!r}")
        return value

    def has(self, name: str) -> bool:
        return self.get(name) is not MISSING

    def set(self, name: str, value: Any) -> None:
        """Set an attribute through the class's type checks and properties."""
        if name in self.facts.fields:
            _check(name, self.facts.fields[name], value)
        name = self.facts.aliases.get(name, name)
        if name in self.facts.read_only:
            raise Refused(f"the config's {name!r} cannot be set: the class computes it")
        if name == "per_layer_config":
            raise NotModelled("per_layer_config: a config that differs from layer to layer")
        if name in RENAMED:
            self.set(RENAMED[name], value)
        elif name == "num_labels":
            self._set_num_labels(value)
        elif name == "output_attentions":
            self._set_output_attentions(value)
        else:
            self.values[name] = value

    def _set_num_labels(self, value: Any) -> None:
        names = self.values.get("id2label")
        if names is None or len(names) != value:
            with replayed("num_labels"):
                self.set("id2label", {i: f"LABEL_{i}" for i in range(value)})
                self.set("label2id", {f"LABEL_{i}": i for i in range(value)})

    def _set_output_attentions(self, value: Any) -> None:
        if value and self.values.get("_attn_implementation") not in (None, "eager"):
            raise Refused("output_attentions works with the eager attention implementation alone")
        self.values["output_attentions"] = value


def _check(name: str, field: Field, value: Any) -> None:
    if not fits(value, field.kind):
        raise Refused(f"config field {name!r} does not take {value!r}")
    if field.bounds is not None and not field.bounds[0] <= value <= field.bounds[1]:
        raise Refused(
            f"config field {name!r} must lie between {field.bounds[0]} and {field.bounds[1]}, got {value!r}"
        )
