"""From the JSON of a `config.json` to the attributes of the object that SGLang works with.

Source: SGLang 0.5.23 `srt/utils/hf_transformers/config.py` (`get_config`,
`HfModelConfigParser`); transformers 5.19.0 `models/auto/configuration_auto.py`
(`AutoConfig.from_pretrained`) and `configuration_utils.py` (`get_config_dict`).
"""

import copy
from collections.abc import Mapping
from typing import Any, Final

from dflash_audit.hf_config.behaviours import TRANSFORMERS_CLASSES
from dflash_audit.hf_config.classes import ClassFacts, base_class, transformers_class
from dflash_audit.hf_config.config_object import Attributes, ConfigObject
from dflash_audit.hf_config.field_types import Kind
from dflash_audit.hf_config.layer_types import GEMMA4_TYPE, heads_vary
from dflash_audit.hf_config.making import make, make_base
from dflash_audit.hf_config.model_types import ONLY_IN_TRANSFORMERS, READ_BY_SGLANG
from dflash_audit.hf_config.own_classes import OWN_CLASSES
from dflash_audit.hf_config.rendering import refuse_unprintable
from dflash_audit.hf_config.text_config import attributes_of, first_architecture, language_part
from dflash_audit.refusal import NotModelled, Refused

LONGCAT: Final = frozenset({"LongcatCausalLM", "LongcatFlashForCausalLM", "LongcatFlashNgramForCausalLM"})
"""Architectures that are read by a class of their own whatever the model type says."""

SPECIAL_FLOATS: Final = {"Infinity": float("inf"), "-Infinity": float("-inf"), "NaN": float("nan")}
"""What `{"__float__": ...}` stands for."""


UNCHECKED_BEFORE: Final = frozenset({"muse_glimmer_assistant"})
UNCHECKED_FIELDS_BEFORE: Final = {"laguna": frozenset({"gating"})}
"""What transformers 5.12.1 does not check, for it has not got it: classes, and fields of a draft."""

_LABELS: Final[Kind] = ["union", ["dict", "int", "str"], ["dict", "str", "str"], "none"]
_IDS: Final[Kind] = ["union", ["dict", "str", "int"], ["dict", "str", "str"], "none"]
CHECKED_BEFORE: Final[Mapping[str, Kind]] = {
    "architectures": ["union", ["list", "str"], "none"],
    "chunk_size_feed_forward": "int",
    "id2label": _LABELS,
    "is_encoder_decoder": "bool",
    "label2id": _IDS,
    "output_hidden_states": ["union", "bool", "none"],
    "problem_type": [
        "union",
        ["literal", "regression", "single_label_classification", "multi_label_classification"],
        "none",
    ],
    "return_dict": ["union", "bool", "none"],
    "transformers_version": ["union", "str", "none"],
}
"""Fields of every config that transformers 5.12.1 checks and 5.19.0 does not.

Source: transformers 5.12.1 `configuration_utils.py`, where `PreTrainedConfig` itself is strict.
"""


def as_engine_sees(config: Mapping[str, Any], older: bool = False) -> dict[str, Any]:
    """The attributes of the config object that SGLang 0.5.23 makes of a `config.json`.

    `config` is the parsed JSON, left unchanged. The result holds each attribute
    under each name that finds it; a `dtype` is torch's name of it; a nested
    part that became an object is `Attributes`, itself a dict. With `older` the
    classes are those of transformers 5.12.1, which SGLang 0.5.19 stands on.

    Raises `Refused` where reading the config stops the engine, and `NotModelled`
    for a model type, or a form of config, that the engine knows and this does not.
    """
    try:
        given: dict[str, Any] = _decoded(config)
    except RecursionError as error:
        raise Refused("the config is nested too deeply") from error
    _refuse_odd_architectures(given)
    _refuse_other_forms(given)
    model_type = _model_type(given)
    if model_type not in TRANSFORMERS_CLASSES and model_type not in OWN_CLASSES:
        raise NotModelled(f"model type {model_type!r}: its config class is not replayed")
    if model_type in READ_BY_SGLANG and model_type not in OWN_CLASSES:
        raise NotModelled(f"model type {model_type!r}: SGLang's own config class is not replayed")
    if older and model_type == GEMMA4_TYPE:
        raise NotModelled(f"model type {model_type!r}: its older config class is not replayed")
    attributes = _finished(_by_auto_config(model_type, copy.deepcopy(given), older))
    if heads_vary(attributes):
        raise Refused("head_dim varies from layer to layer, and the engine asks for one")
    _copy_language_part(attributes)
    _refuse_odd_auto_map(attributes)
    if model_type in OWN_CLASSES:
        attributes = _finished(OWN_CLASSES[model_type](given))
    return attributes


def as_transformers_sees(config: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of the object that `AutoConfig` alone makes of a `config.json`.

    `config` is the parsed JSON, left unchanged. Raises as `as_engine_sees`, but for what
    SGLang asks beyond that; names in `architectures` are left to the caller.
    """
    try:
        given: dict[str, Any] = _decoded(config)
    except RecursionError as error:
        raise Refused("the config is nested too deeply") from error
    _refuse_other_forms(given)
    model_type = _model_type(given)
    if model_type not in TRANSFORMERS_CLASSES:
        raise NotModelled(f"model type {model_type!r}: its config class is not replayed")
    return _finished(make(transformers_class(model_type), TRANSFORMERS_CLASSES[model_type], given))


def as_base_class_sees(config: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of the object that `PreTrainedConfig` itself makes of a table without a model type."""
    given: dict[str, Any] = _decoded(config)
    return _finished(make_base(given))


def reads_params_json(name: str) -> bool:
    """Whether SGLang reads `params.json` in place of `config.json`, as it does by a model's name or path.

    Source: SGLang 0.5.23 `srt/utils/hf_transformers/mistral_utils.py`, `is_mistral_model`.
    """
    lower = name.lower()
    native = any(family in lower for family in ("mistral-large-3", "mistral-small-4", "leanstral"))
    return native or ("eagle" in lower and "mistral" in lower)


def _finished(config: ConfigObject) -> Attributes:
    refuse_unprintable(config)
    return attributes_of(config)


def _by_auto_config(model_type: str, given: dict[str, Any], older: bool) -> ConfigObject:
    if model_type in TRANSFORMERS_CLASSES:
        facts = transformers_class(model_type)
        facts = _as_before(facts, model_type) if older else facts
        return make(facts, TRANSFORMERS_CLASSES[model_type], given)
    return OWN_CLASSES[model_type](given)


def _as_before(facts: ClassFacts, model_type: str) -> ClassFacts:
    unchecked = UNCHECKED_FIELDS_BEFORE.get(model_type, frozenset())
    if model_type in UNCHECKED_BEFORE:
        unchecked = frozenset(facts.fields) - frozenset(base_class().fields)
    fields = {
        name: field._replace(kind="any" if name in unchecked else CHECKED_BEFORE.get(name, field.kind))
        for name, field in facts.fields.items()
    }
    return facts._replace(fields=fields, odd_heads=True)


def _decoded(value: Any) -> Any:
    """The JSON with its tagged special floats put in, a copy throughout."""
    if isinstance(value, Mapping):
        tag = value.get("__float__") if len(value) == 1 else None
        if isinstance(tag, str) and tag in SPECIAL_FLOATS:
            return SPECIAL_FLOATS[tag]
        return {key: _decoded(content) for key, content in value.items()}
    if isinstance(value, list):
        return [_decoded(item) for item in value]
    return value


def _refuse_odd_architectures(given: Mapping[str, Any]) -> None:
    """The engine looks for LongCat's names in whatever stands under `architectures`."""
    architectures = given.get("architectures")
    if architectures is None:
        raise Refused("the config names no architectures")
    first_architecture(architectures)
    for name in architectures:
        if isinstance(name, list | dict):
            raise Refused(f"architectures holds {name!r}, which is no name")
    if any(name in LONGCAT for name in architectures):
        raise NotModelled("LongCat's config class is not replayed")


def _refuse_other_forms(given: dict[str, Any]) -> None:
    """Forms of config.json that are told by other keys than the model type's."""
    if "configuration_files" in given:
        raise NotModelled("configuration_files: a config for each version of transformers")
    if not given.get("model_type") and {"d_model", "ssm_cfg"} <= set(given):
        raise NotModelled("a config of the first Mamba models")
    if "model_type" not in given and "pretrained_cfg" in given:
        raise NotModelled("a config of the timm library")
    if "auto_map" in given and _names_config_code(given["auto_map"]):
        _refuse_odd_reference(given["auto_map"]["AutoConfig"])
        if not _known(given.get("model_type")):
            raise Refused("the config's class is code in the checkpoint, which needs --trust-remote-code")


def _refuse_odd_reference(reference: Any) -> None:
    """The engine looks for a repository before `--`, and splits the name there."""
    searched = isinstance(reference, list | dict) and "--" not in reference
    if not isinstance(reference, str) and not searched:
        raise Refused(f"auto_map.AutoConfig is not a name: {reference!r}")


def _names_config_code(auto_map: Any) -> bool:
    if not isinstance(auto_map, dict | list | str):
        raise Refused(f"auto_map is not an object: {auto_map!r}")
    if "AutoConfig" not in auto_map:
        return False
    if not isinstance(auto_map, dict):
        raise Refused(f"auto_map is not an object: {auto_map!r}")
    return True


def _known(model_type: Any) -> bool:
    if isinstance(model_type, list | dict):
        raise Refused(f"model_type is not a name: {model_type!r}")
    return (
        model_type in TRANSFORMERS_CLASSES
        or model_type in ONLY_IN_TRANSFORMERS
        or model_type in READ_BY_SGLANG
    )


def _model_type(given: dict[str, Any]) -> str:
    """The model type by which a class is picked."""
    if "model_type" not in given:
        raise Refused("unrecognized model: the config has no model_type")
    model_type = given["model_type"]
    if not _known(model_type):
        raise Refused(f"transformers does not recognize the model type {model_type!r}")
    if model_type == "mistral" and "layer_types" in given:
        given["model_type"] = "ministral"
    return str(given["model_type"])


def _copy_language_part(attributes: Attributes) -> None:
    """Give the whole config what only its language part has."""
    part = language_part(attributes)
    for name, value in part.items():
        if name not in attributes and value is not None:
            attributes[name] = value


def _refuse_odd_auto_map(attributes: Mapping[str, Any]) -> None:
    auto_map = attributes.get("auto_map") or {}
    if not isinstance(auto_map, dict):
        raise Refused(f"auto_map is not an object: {auto_map!r}")
    if str(auto_map.get("AutoModel")).startswith(("modeling_deepseekocr.", "modeling_deepseekocr2.")):
        raise NotModelled("DeepSeek-OCR's config class is not replayed")
