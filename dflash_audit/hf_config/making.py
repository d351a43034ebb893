"""Make a config object of a class: fields, the class's own steps, the common part, the checks.

Source: transformers 5.19.0 `configuration_utils.py`
(`PreTrainedConfig.__post_init__` and its `validate_*` methods) and
`generation/configuration_utils.py` (`_get_default_generation_params`).
"""

from collections.abc import Mapping
from typing import Any, Final

from dflash_audit.hf_config import layer_types
from dflash_audit.hf_config.classes import ClassFacts, base_class, methods
from dflash_audit.hf_config.config_object import ConfigObject
from dflash_audit.hf_config.replay import replayed
from dflash_audit.hf_config.steps import Behaviour
from dflash_audit.refusal import NotModelled, Refused

GENERATION: Final = (
    "max_length", "min_length", "do_sample", "use_cache", "early_stopping", "num_beams", "temperature",
    "top_k", "top_p", "typical_p", "repetition_penalty", "length_penalty", "no_repeat_ngram_size",
    "encoder_no_repeat_ngram_size", "bad_words_ids", "num_return_sequences", "output_scores",
    "return_dict_in_generate", "forced_bos_token_id", "forced_eos_token_id", "remove_invalid_values",
    "exponential_decay_length_penalty", "suppress_tokens", "begin_suppress_tokens", "epsilon_cutoff",
    "eta_cutoff", "encoder_repetition_penalty", "num_assistant_tokens", "num_assistant_tokens_schedule",
    "assistant_confidence_threshold", "assistant_lookbehind", "target_lookbehind", "num_beam_groups",
    "diversity_penalty",
)  # fmt: skip
"""Keys of text generation: a class without such a field drops them."""

_DTYPES: Final = (
    "bcomplex32", "bfloat16", "bits16", "bits1x8", "bits2x4", "bits4x2", "bits8", "bool", "complex128",
    "complex32", "complex64", "float16", "float32", "float4_e2m1fn_x2", "float64", "float8_e4m3fn",
    "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "int1", "int16", "int2", "int3",
    "int32", "int4", "int5", "int6", "int64", "int7", "int8", "qint32", "qint8", "quint2x4", "quint4x2",
    "quint8", "uint1", "uint16", "uint2", "uint3", "uint32", "uint4", "uint5", "uint6", "uint64", "uint7",
    "uint8",
)  # fmt: skip

TORCH_DTYPES: Final[Mapping[str, str]] = {name: name for name in _DTYPES} | {
    "bit": "uint1", "cdouble": "complex128", "cfloat": "complex64", "chalf": "complex32",
    "double": "float64", "float": "float32", "half": "float16", "int": "int32", "long": "int64",
    "short": "int16",
}  # fmt: skip
"""Names that torch 2.x knows as a dtype -> the dtype's own name."""

PRIVATE: Final = ("_attn_implementation_internal", "_experts_implementation_internal")

TEXT_CONFIG_NAMES: Final = ("decoder", "generator", "text_config")
"""Where `get_text_config(decoder=True)` looks for the decoder of a composite config."""

LONGEST: Final = 100_000
"""Most layers or labels that are listed here: the engine would list any number."""

TOO_DEEP: Final = 10**8
"""Layers for which no card has the room, whatever their size: a layer has eight parameters at least, and
torch takes 512 bytes for the smallest (`CUDACachingAllocator.cpp`, `kMinBlockSize`), which makes 400 GB."""


BASE: Final = Behaviour(validate_layer_types=layer_types.validate_with_mtp)
"""PreTrainedConfig itself, with SGLang's patch of its layer check."""


def make(facts: ClassFacts, behaviour: Behaviour, given: Mapping[str, Any]) -> ConfigObject:
    """The object that a class makes of a config; `given` is used up."""
    config = ConfigObject(facts, given)
    complete(config, behaviour)
    return config


def make_base(given: Mapping[str, Any]) -> ConfigObject:
    """The object that PreTrainedConfig makes of a config without a class of its own."""
    return make(base_class(), BASE, given)


def complete(config: ConfigObject, behaviour: Behaviour) -> None:
    """Everything after the fields are set."""
    if hidden := methods() & set(config.extra):
        raise NotModelled(f"config keys that hide a method of the config class: {', '.join(sorted(hidden))}")
    for name in ("num_hidden_layers", "num_labels"):
        count = config.extra.get(name, config.get(name, None))
        if isinstance(count, int) and name == "num_hidden_layers" and count >= TOO_DEEP:
            raise Refused(f"num_hidden_layers={count}: the smallest layers are more than any card holds")
        if isinstance(count, int) and count > LONGEST:
            raise NotModelled(f"{name}={count}: too many to list")
    with replayed("the config class cannot use the config"):
        for step in behaviour.before:
            step(config)
        _common(config, behaviour)
        for step in behaviour.after:
            step(config)
    if behaviour.strict:
        check(config, behaviour)


def _common(config: ConfigObject, behaviour: Behaviour) -> None:
    """`PreTrainedConfig.__post_init__`: the class keeps its own copy of the extra keys."""
    kept = config.extra
    config.extra = dict(kept)
    _settle_dtype(config)
    _settle_labels(config)
    older_rope = config.extra.get("rope_scaling") and config.extra.get("rope_theta")
    if config.has("rope_parameters") or older_rope:
        behaviour.convert_rope(config)
    _take_extra(config)
    layer_types.remap(config)
    config.extra = kept


def _settle_dtype(config: ConfigObject) -> None:
    older = config.extra.pop("torch_dtype", None)
    if config.get("dtype") is None and older is not None:
        config.set("dtype", older)
    dtype = config.get("dtype")
    if isinstance(dtype, str):
        if dtype not in TORCH_DTYPES:
            raise Refused(f"torch has no dtype {dtype!r}")
        config.set("dtype", TORCH_DTYPES[dtype])


def _settle_labels(config: ConfigObject) -> None:
    names = config.get("id2label")
    if names is None:
        config.set("num_labels", config.extra.get("num_labels", 2))
    elif not isinstance(names, dict):
        raise Refused(f"id2label is not an object: {names!r}")
    else:
        config.set("id2label", {int(key): value for key, value in names.items()})
    single = config.get("problem_type") == "single_label_classification"
    if single and len(config.need("id2label")) == 1:
        raise Refused("problem_type single_label_classification needs more than one label")


def _take_extra(config: ConfigObject) -> None:
    """Set the keys that are no fields as attributes, but for those that the class takes out."""
    extra = config.extra
    for name in (*GENERATION, "name_or_path", "_commit_hash"):
        extra.pop(name, None)
    config.values["output_attentions"] = extra.pop("output_attentions", False)
    config.values["_attn_implementation"] = _attention(extra.pop("attn_implementation", None))
    extra.pop("experts_implementation", None)
    per_layer = extra.pop("per_layer_config", None)
    for name, value in extra.items():
        if name not in PRIVATE:
            config.set(name, value)
    if per_layer is not None:
        config.set("per_layer_config", per_layer)


def _attention(implementation: Any) -> Any:
    """The attention implementation of the whole, where a table names one for each part."""
    return implementation.get("") if isinstance(implementation, dict) else implementation


def check(config: ConfigObject, behaviour: Behaviour) -> None:
    """The checks of a `@strict` class, after the object is made."""
    for what, validate in (
        ("architecture", behaviour.validate_architecture),
        ("layer types", behaviour.validate_layer_types),
        ("output_attentions", _validate_output_attentions),
        ("rope_parameters", behaviour.validate_rope),
        ("token ids", _validate_token_ids),
    ):
        with replayed(f"the config class cannot check the {what}"):
            validate(config)


def _validate_output_attentions(config: ConfigObject) -> None:
    if config.need("output_attentions") and config.need("_attn_implementation") not in ("eager", None):
        raise Refused("output_attentions works with the eager attention implementation alone")


def _validate_token_ids(config: ConfigObject) -> None:
    """Ids out of range are only warned of; what can fail is finding the text part and comparing."""
    parts = [name for name in TEXT_CONFIG_NAMES if config.get(name, None) is not None]
    if len(parts) > 1:
        raise Refused(f"multiple valid text configs were found in the model config: {', '.join(parts)}")
    if parts:
        return
    if config.get("is_encoder_decoder") and any(name.startswith("decoder") for name in config.values):
        raise NotModelled("is_encoder_decoder with decoder_* keys")
    size = config.get("vocab_size", None)
    if size is not None:
        for name, value in config.values.items():
            if name.endswith("_token_id") and isinstance(value, int) and value >= 0:
                _ = value < size
