"""Steps that many config classes share, and what a class is made of.

Source: transformers 5.19.0 `models/*/configuration_*.py`. A step reads and sets
attributes of the object and may take keys out of `extra`, which holds what the
config has beyond the class's fields.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from dflash_audit.hf_config import layer_types, rope
from dflash_audit.hf_config.config_object import MISSING, ConfigObject
from dflash_audit.refusal import Refused

Step = Callable[[ConfigObject], None]


def heads_fill_embedding(config: ConfigObject) -> None:
    """PreTrainedConfig's own check, which few classes have the attributes for."""
    head, heads, width = (config.get(name) for name in ("head_dim", "num_heads", "embed_dim"))
    if MISSING not in (head, heads, width) and head * heads != width:
        raise Refused(f"the embed_dim ({width}) is not a multiple of the number of attention heads ({heads})")


class Behaviour(NamedTuple):
    """What a class does `before` and `after` the common part, and its own checks."""

    before: tuple[Step, ...] = ()
    after: tuple[Step, ...] = ()
    convert_rope: Step = rope.convert
    validate_rope: Step = rope.validate
    validate_layer_types: Step = layer_types.validate
    validate_architecture: Step = heads_fill_embedding
    strict: bool = True
    """Whether the checks run at all: SGLang's subclasses are not `@strict`."""


def kv_heads(config: ConfigObject) -> None:
    if config.get("num_key_value_heads") is None:
        config.set("num_key_value_heads", config.need("num_attention_heads"))


def head_dim(config: ConfigObject) -> None:
    if config.get("head_dim") is None:
        head_dim_from_heads(config)


def head_dim_from_heads(config: ConfigObject) -> None:
    config.set("head_dim", config.need("hidden_size") // config.need("num_attention_heads"))


def window_behind_switch(config: ConfigObject) -> None:
    if not config.need("use_sliding_window"):
        config.set("sliding_window", None)


def mlp_only_layers(config: ConfigObject) -> None:
    if config.get("mlp_only_layers") is None:
        config.set("mlp_only_layers", [])


def latent_head_dims(config: ConfigObject) -> None:
    """MLA classes: the width of a query head, and the rotary part as `head_dim`."""
    config.set("qk_head_dim", config.need("qk_nope_head_dim") + config.need("qk_rope_head_dim"))
    config.set("head_dim", config.need("qk_rope_head_dim"))


def partial_rotary(factor: float) -> Step:
    def fill(config: ConfigObject) -> None:
        config.extra.setdefault("partial_rotary_factor", factor)

    return fill


def default(name: str, make: Callable[[ConfigObject], Any]) -> Step:
    """A step that fills in an attribute that is None."""

    def fill(config: ConfigObject) -> None:
        if config.get(name) is None:
            config.set(name, make(config))

    return fill


def from_extra(name: str, key: str) -> Step:
    """A step that lets an older key, where given, override an attribute."""

    def take(config: ConfigObject) -> None:
        if key in config.extra:
            config.set(name, config.extra.pop(key))

    return take


def heads_divide_width(config: ConfigObject) -> None:
    width, heads = config.need("hidden_size"), config.need("num_attention_heads")
    if width % heads != 0:
        raise Refused(
            f"the hidden size ({width}) is not a multiple of the number of attention heads ({heads})"
        )


def every(interval: int) -> Callable[[ConfigObject, int], bool]:
    """The rule of layers that are no multiple of an interval, counted from one."""
    return lambda config, layer: bool((layer + 1) % interval)


def known_rope_keys(*keys: str) -> Step:
    def tell(config: ConfigObject) -> None:
        config.extra["ignore_keys_at_rope_validation"] = list(keys)

    return tell


def set_aside(*keys: str) -> Step:
    """A step that keeps keys back from the common part for a later step."""

    def take(config: ConfigObject) -> None:
        config.aside = {key: config.extra.pop(key, None) for key in keys}

    return take
