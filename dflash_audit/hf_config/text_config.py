"""The language part of a config, and how SGLang makes one of a nested table.

Source: SGLang 0.5.23 `srt/utils/hf_transformers/common.py`
(`get_hf_text_config`, `_patch_text_config`) and
`srt/utils/hf_transformers_patches.py` (`normalize_rope_scaling_compat`);
transformers 5.19.0 `configuration_utils.py` (`get_text_config`).
"""

from collections.abc import Mapping
from typing import Any, Final

from dflash_audit.hf_config.config_object import Attributes, ConfigObject
from dflash_audit.hf_config.making import make_base
from dflash_audit.refusal import Refused

NESTED: Final = ("text_config", "llm_config", "language_config", "thinker_config")
"""Keys whose tables become config objects of their own."""

PARTS: Final = ("llm_config", "language_config", "text_config")
"""Keys under which a multimodal config holds its language part, in the engine's order."""

SHARED: Final = ("pad_token_id", "bos_token_id", "eos_token_id", "tie_word_embeddings")
"""Attributes that the whole and its language part get from one another."""

WITH_ROPE: Final = ("text_config", "llm_config", "language_config", "vision_config", "thinker_config")


def attributes_of(config: ConfigObject) -> Attributes:
    """Every attribute that `getattr` finds on a finished object, under each of its names."""
    found = Attributes({**config.facts.attributes, **config.values})
    for alias, name in config.facts.aliases.items():
        if name in found:
            found[alias] = found[name]
    if "rope_parameters" in found:
        found["rope_scaling"] = found["rope_parameters"]
    return found


def decoder_part(attributes: Mapping[str, Any]) -> Any:
    """`config.get_text_config()`: the config itself where it names no part.

    Refused where it names more than one. A part is `Attributes` once the
    engine has made an object of it, and what the config holds otherwise.
    """
    names = ("text_encoder", "decoder", "generator", "text_config")
    parts = [name for name in names if attributes.get(name) is not None]
    if len(parts) > 1:
        raise Refused(f"multiple valid text configs were found in the model config: {', '.join(parts)}")
    return attributes[parts[0]] if parts else attributes


def language_part(attributes: Attributes) -> Attributes:
    """The language part (`get_hf_text_config`), or the config itself; changes the config on the way."""
    architectures = attributes["architectures"]
    if architectures is not None and _reads_whole(first_architecture(architectures)):
        attributes["dtype"] = "float16"
        return attributes
    _make_objects(attributes)
    part = _chosen(attributes)
    _name_rope_type(attributes)
    if part is None:
        return attributes
    if not isinstance(part, Attributes):
        raise Refused(f"the language part of the config is not an object: {part!r}")
    for name in SHARED:
        if name in attributes and name not in part:
            part[name] = attributes[name]
        elif name in part and name not in attributes:
            attributes[name] = part[name]
    return part


def language_table(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The language part of a config.json as it was read, before any class makes an object of it; else all."""
    named = config.get("architectures")
    if isinstance(named, list) and named and isinstance(named[0], str) and _reads_whole(named[0]):
        return config
    thinker = config.get("thinker_config")
    if isinstance(thinker, Mapping):
        inner = thinker.get("text_config")
        return inner if isinstance(inner, Mapping) else thinker
    parts = (config.get(key) for key in PARTS)
    return next((part for part in parts if isinstance(part, Mapping)), config)


def _reads_whole(architecture: str) -> bool:
    """Whether the engine goes by the top of the config, whatever parts it names."""
    return architecture.startswith("Llava") and architecture.endswith("ForCausalLM")


def first_architecture(architectures: Any) -> str:
    """`architectures[0]`, which the engine takes for a name."""
    if isinstance(architectures, str | list) and architectures and isinstance(architectures[0], str):
        return architectures[0]
    raise Refused(f"architectures is not a list of names: {architectures!r}")


def _make_objects(attributes: Attributes) -> None:
    dtype = attributes.get("dtype")
    for name in NESTED:
        part = attributes.get(name)
        if isinstance(part, dict) and not isinstance(part, Attributes):
            part = attributes[name] = attributes_of(make_base(part))
        if part is None or dtype is None:
            continue
        if not isinstance(part, Attributes):
            raise Refused(f"{name} is not an object: {part!r}")
        if part.get("dtype") is None:
            part["dtype"] = dtype


def _chosen(attributes: Attributes) -> Any:
    if "thinker_config" in attributes:
        thinker = attributes["thinker_config"]
        if isinstance(thinker, Attributes) and "text_config" in thinker:
            # The engine sets an attribute on what is still a JSON value here.
            raise Refused("thinker_config.text_config is not a config object")
        return thinker
    for name in PARTS:
        if name in attributes:
            part = attributes[name]
            if name != "language_config" and not (
                isinstance(part, Attributes) and "num_attention_heads" in part
            ):
                raise Refused(f"{name} has no num_attention_heads")
            return part
    return None


def _name_rope_type(attributes: Mapping[str, Any]) -> None:
    """Give rotary parameters the older `type` beside `rope_type`."""
    scaling = attributes.get("rope_scaling")
    if isinstance(scaling, dict) and "rope_type" in scaling and "type" not in scaling:
        scaling["type"] = scaling["rope_type"]
    for name in WITH_ROPE:
        part = attributes.get(name)
        if isinstance(part, Attributes):
            _name_rope_type(part)
