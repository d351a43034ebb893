"""What is recorded of a config class: its fields, their types and defaults, its other names.

The table is `recorded.json`, read from transformers 5.19.0 and SGLang 0.5.23 by
`scripts/record_hf_configs.py`. It is read when first asked for.
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from dflash_audit.hf_config.field_types import Kind


class Field(NamedTuple):
    """A field: `bounds` are the smallest and the largest value beside the type."""

    kind: Kind
    default: Any
    bounds: tuple[float, float] | None = None


class ClassFacts(NamedTuple):
    """A config class as data.

    `aliases` is its attribute_map (another name -> the attribute's own),
    `attributes` its plain class attributes that are no fields, `read_only` its
    properties without a setter, `parameters` the arguments with defaults of an
    `__init__` that the class has written itself. With `odd_heads` it takes a
    head of an odd width.
    """

    fields: Mapping[str, Field]
    aliases: Mapping[str, str]
    attributes: Mapping[str, Any]
    read_only: frozenset[str]
    parameters: Mapping[str, Any]
    odd_heads: bool = False


@cache
def _recorded() -> dict[str, Any]:
    text = Path(__file__).with_name("recorded.json").read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    return document


def _fields(entry: Mapping[str, Any]) -> dict[str, Field]:
    bounds = entry.get("bounds", {})
    return {
        name: Field(kind, default, tuple(bounds[name]) if name in bounds else None)
        for name, (kind, default) in entry.get("fields", {}).items()
    }


def _facts(entry: Mapping[str, Any]) -> ClassFacts:
    base = _recorded()["base"]
    return ClassFacts(
        fields=_fields(base) | _fields(entry),
        aliases=entry.get("aliases", {}),
        attributes=base["attributes"] | entry.get("attributes", {}),
        read_only=frozenset(base["read_only"]) | frozenset(entry.get("read_only", ())),
        parameters=entry.get("parameters", {}),
    )


@cache
def transformers_class(model_type: str) -> ClassFacts:
    """The class that AutoConfig takes for a model type."""
    return _facts(_recorded()["transformers"][model_type])


@cache
def sglang_class(model_type: str) -> ClassFacts:
    """The class of SGLang's own registry, with which it reads a config again."""
    return _facts(_recorded()["sglang"][model_type])


@cache
def base_class() -> ClassFacts:
    """PreTrainedConfig itself."""
    return _facts({})


@cache
def methods() -> frozenset[str]:
    """Names of PreTrainedConfig's methods: a config key of such a name hides one."""
    return frozenset(_recorded()["base"]["methods"])
