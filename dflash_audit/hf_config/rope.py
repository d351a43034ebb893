"""Rotary embedding parameters: how a config class settles and checks them.

Source: transformers 5.19.0 `modeling_rope_utils.py`
(`RotaryEmbeddingConfigMixin`), with SGLang 0.5.23's guard in
`srt/utils/hf_transformers_patches.py` (`_patch_rope_parameters_validation`).
"""

from collections.abc import Mapping
from typing import Any, Final

from dflash_audit.hf_config.config_object import MISSING, ConfigObject
from dflash_audit.hf_config.replay import as_table, replayed
from dflash_audit.refusal import Refused

REQUIRED: Final[Mapping[str, frozenset[str]]] = {
    "linear": frozenset({"factor"}),
    "dynamic": frozenset({"factor"}),
    "yarn": frozenset({"factor", "original_max_position_embeddings"}),
    "longrope": frozenset({"short_factor", "long_factor", "original_max_position_embeddings"}),
    "llama3": frozenset(
        {"factor", "original_max_position_embeddings", "low_freq_factor", "high_freq_factor", "rope_theta"}
    ),
    "proportional": frozenset({"rope_theta"}),
}
"""Keys that a rope type cannot do without; a type that is not here needs none."""

STRETCHED: Final = ("llama3", "yarn", "longrope")
"""Types that carry the length of the pretraining."""


def nested_keys(config: ConfigObject, parameters: Any) -> list[Any]:
    """The layer types under which the parameters are nested; empty for flat ones."""
    labels = config.get("_rope_type_labels", None) or config.get("layer_types", None) or ()
    return [key for key in parameters if key in labels]


def _single(config: ConfigObject, parameters: Any) -> list[Any]:
    """The flat sets of parameters: each nested one, or the whole."""
    return [parameters[key] for key in nested_keys(config, parameters)] or [parameters]


def convert(config: ConfigObject) -> None:
    """Move the keys of older configs into `rope_parameters` (`convert_rope_params_to_dict`)."""
    scaling = config.extra.pop("rope_scaling", None)
    parameters = scaling or config.need("rope_parameters")
    config.set("rope_parameters", {} if parameters is None else parameters)
    parameters = config.need("rope_parameters")
    theta = config.extra.pop("rope_theta", config.get("rope_theta", config.need("default_theta")))
    factor = config.extra.get("partial_rotary_factor", config.get("partial_rotary_factor", None))
    for single in _single(config, parameters):
        if single is not None:
            table = as_table(single, "rope_parameters")
            table.setdefault("rope_theta", theta)
            if factor is not None:
                table.setdefault("partial_rotary_factor", factor)
    standardize(config)


def convert_rotary_dim(config: ConfigObject) -> None:
    """The same for MiniMax-M2, whose checkpoints give the rotary width in numbers."""
    width = config.extra.get("rotary_dim", config.get("rotary_dim", None))
    if width is not None:
        config.extra.setdefault("partial_rotary_factor", width / config.need("head_dim"))
    convert(config)


def convert_multimodal(config: ConfigObject) -> None:
    """The same for the Qwen2-VL family, whose `mrope` is no type of its own."""
    scaling = config.extra.pop("rope_scaling", None)
    parameters = scaling or config.need("rope_parameters")
    config.set("rope_parameters", {} if parameters is None else parameters)
    table = config.need("rope_parameters")
    table.setdefault("rope_theta", config.extra.pop("rope_theta", config.need("default_theta")))
    if table.get("rope_type", table.get("type")) == "mrope":
        table["rope_type"] = "default"
    standardize(config)


def convert_by_layer_type(config: ConfigObject) -> None:
    """The same for Gemma 3: one set of parameters for full, one for sliding attention."""
    scaling = config.extra.pop("rope_scaling", None)
    if config.get("rope_parameters") is None:
        default = {"sliding_attention": {"rope_type": "default"}, "full_attention": {"rope_type": "default"}}
        config.set("rope_parameters", default)
    parameters = config.need("rope_parameters")
    if scaling is not None:
        as_table(parameters["full_attention"], "rope_parameters").update(scaling)
    theta = config.need("default_theta")
    for layer_type, key, which in (
        ("full_attention", "rope_theta", "global"),
        ("sliding_attention", "rope_local_base_freq", "local"),
    ):
        if parameters.get(layer_type) is None:
            parameters[layer_type] = {"rope_type": "default"}
        base = config.extra.pop(key, theta[which])
        as_table(parameters[layer_type], "rope_parameters").setdefault("rope_theta", base)
    standardize(config)


def leave(config: ConfigObject) -> None:
    """Classes that have no older form to convert."""


def standardize(config: ConfigObject) -> None:
    """Fill in type, base and pretraining length (`standardize_rope_params`)."""
    theta = config.get("rope_theta", None)
    parameters = config.get("rope_parameters", None) or {}
    if not (parameters or theta):
        return
    nested = bool(nested_keys(config, parameters))
    for single in _single(config, parameters):
        if single is not None and not _fill(config, as_table(single, "rope_parameters"), theta, nested):
            return
    config.set("rope_parameters", parameters)


def _fill(config: ConfigObject, table: dict[Any, Any], theta: Any, nested: bool) -> bool:
    """False where SGLang's guard ends the filling: the length is not known yet."""
    factor = config.get("partial_rotary_factor", None)
    table.setdefault("rope_type", table.get("type", "default"))
    table.setdefault("rope_theta", theta)
    if factor is not None:
        table.setdefault("partial_rotary_factor", factor)
    if table["rope_type"] not in STRETCHED:
        return True
    original = MISSING if nested else config.get("original_max_position_embeddings")
    if original is not MISSING:
        table["original_max_position_embeddings"] = original
        return True
    longest = config.get("max_position_embeddings")
    if longest is MISSING:
        return False
    table.setdefault("original_max_position_embeddings", longest)
    return True


def validate(config: ConfigObject) -> None:
    """Refuse parameters that lack a key of their type, and odd heads (`validate_rope`)."""
    parameters = config.get("rope_parameters", None)
    if not parameters:
        return
    nested = nested_keys(config, parameters)
    by_type = {key: parameters[key] for key in nested} if nested else {"full_attention": parameters}
    for layer_type, single in by_type.items():
        if single is not None:
            table = as_table(single, "rope_parameters")
            validate_one(config, table)
            if not config.facts.odd_heads:
                _refuse_odd_head(config, table, layer_type)


def validate_one(config: ConfigObject, table: dict[Any, Any]) -> None:
    """Check one flat set of parameters against its type."""
    rope_type = table.get("rope_type", table.get("type", "default"))
    table["rope_type"] = rope_type
    if not isinstance(rope_type, str):
        return
    ignored = config.get("ignore_keys_at_rope_validation", None)
    received = set(table) - (set() if ignored is None else set(ignored))
    if missing := REQUIRED.get(rope_type, frozenset()) - received:
        raise Refused(f"rope_parameters of type {rope_type!r} lack {', '.join(sorted(missing))}")
    if rope_type in _NUMBERS:
        _NUMBERS[rope_type](config, table)


def _yarn(config: ConfigObject, table: dict[Any, Any]) -> None:
    _ = (table.get("beta_fast") or 32) < (table.get("beta_slow") or 1)
    _ = config.need("max_position_embeddings") / table["original_max_position_embeddings"]


def _llama3(config: ConfigObject, table: dict[Any, Any]) -> None:
    _ = table["high_freq_factor"] <= table["low_freq_factor"]
    _ = table["original_max_position_embeddings"] >= config.need("max_position_embeddings")


def _longrope(config: ConfigObject, table: dict[Any, Any]) -> None:
    fallback = config.need("hidden_size") // config.need("num_attention_heads")
    _ = int(config.get("head_dim", fallback) * table.get("partial_rotary_factor", 1.0)) // 2
    _ = len(table["short_factor"]), len(table["long_factor"])


_NUMBERS: Final = {"yarn": _yarn, "llama3": _llama3, "longrope": _longrope}
"""Arithmetic that the engine does on the way to a warning, and that fails on other types."""


def _refuse_odd_head(config: ConfigObject, table: Mapping[Any, Any], layer_type: Any) -> None:
    head_dim = config.get("head_dim", None)
    factor = table.get("partial_rotary_factor", 1.0)
    with replayed(f"the config class cannot calculate with head_dim{_beside(table)}"):
        odd = head_dim is not None and head_dim > 4 and head_dim % 2 and int(head_dim * factor) == head_dim
    if odd:
        raise Refused(
            f"RoPE requires an even rotary dimension, but got head_dim={head_dim} with "
            f"partial_rotary_factor={factor} for {layer_type}"
        )


def _beside(table: Mapping[Any, Any]) -> str:
    return " and partial_rotary_factor" if "partial_rotary_factor" in table else ""
