"""The names of layer types, and the schedules that classes fill in for missing ones.

Source: transformers 5.19.0 `configuration_utils.py` (`ALLOWED_ATTN_LAYER_TYPES`,
`ALLOWED_MLP_LAYER_TYPES`, `_LEGACY_LAYER_TYPE_REMAP`, `validate_layer_type`);
the schedules are those of the model types' own configuration files.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from dflash_audit.hf_config.config_object import ConfigObject
from dflash_audit.refusal import Refused

GEMMA4_TYPE: Final = "gemma4_text"

HEADS_BY_LAYER: Final = "heads_by_layer"
"""The attribute that stands for what a Gemma 4 config has layer by layer: (head_dim, num_key_value_heads)."""

FULL: Final = "full_attention"
SLIDING: Final = "sliding_attention"

ATTENTION: Final = (
    "full_attention",
    "sliding_attention",
    "chunked_attention",
    "window_attention",
    "indexed_attention",
    "compressed_sparse_attention",
    "heavily_compressed_attention",
    "minimax_m3_sparse",
    "conv",
    "moe",
    "hybrid",
    "hybrid_sliding",
    "linear_attention",
)
MLP: Final = ("sparse", "dense")

LEGACY: Final[Mapping[Any, str]] = {
    "mamba": "linear_attention",
    "attention": "full_attention",
    "deepseek_sparse_attention": "indexed_attention",
    "qwen_sparse_attention": "indexed_attention",
}


def heads_vary(attributes: Mapping[str, Any]) -> bool:
    """Whether a layer of a Gemma 4 config has other heads than the config as a whole.

    Such an object has no width and no number of heads as a whole, even where all its layers are alike:
    what asks for one raises.
    """
    whole = (attributes.get("head_dim"), attributes.get("num_key_value_heads"))
    return any(own != whole for own in attributes.get(HEADS_BY_LAYER, ()))


def remap(config: ConfigObject) -> None:
    """Replace older names in `layer_types` and `mtp_layer_types`."""
    for name in ("layer_types", "mtp_layer_types"):
        given = config.get(name, None)
        if given is not None:
            renamed = [LEGACY.get(layer_type, layer_type) for layer_type in given]
            if renamed != given:
                config.set(name, renamed)


def validate(config: ConfigObject) -> None:
    """Refuse unknown names and a list of another length than the model is deep."""
    _refuse_unknown_names(config)
    _refuse_other_length(config, config.get("num_hidden_layers", None))


def validate_with_mtp(config: ConfigObject) -> None:
    """The same as SGLang patches it into the base class: a longer list may count MTP layers.

    Source: SGLang 0.5.23 `srt/utils/hf_transformers_patches.py`, `_patch_layer_types_validation`.
    """
    _refuse_unknown_names(config)
    depth = config.get("num_hidden_layers", None)
    mtp_layers = config.get("num_nextn_predict_layers", 0) or 0
    if mtp_layers and any(depth not in (None, len(layers)) for _, layers, _ in _lists(config)):
        depth += mtp_layers
    _refuse_other_length(config, depth)


def _lists(config: ConfigObject) -> Iterator[tuple[str, Any, tuple[str, ...]]]:
    """(name, entries, allowed entries); the engine stops at the first list that is missing."""
    for name, allowed in (("layer_types", ATTENTION), ("mlp_layer_types", MLP)):
        layers = config.get(name, None)
        if layers is None or not config.has("num_hidden_layers"):
            return
        yield name, layers, allowed


def _refuse_unknown_names(config: ConfigObject) -> None:
    for name, layers, allowed in _lists(config):
        if not all(layer_type in allowed for layer_type in layers):
            raise Refused(f"the {name} entries must be in {allowed} but got {layers!r}")


def _refuse_other_length(config: ConfigObject, depth: Any) -> None:
    for name, layers, _ in _lists(config):
        if depth not in (None, len(layers)):
            raise Refused(
                f"num_hidden_layers ({depth}) must be equal to the number of {name} ({len(layers)})"
            )


def schedule(rule: Callable[[ConfigObject, int], bool], yes: str, no: str) -> Callable[[ConfigObject], None]:
    """A step that fills in missing `layer_types`: `yes` for each layer where the rule holds."""

    def fill(config: ConfigObject) -> None:
        if config.get("layer_types") is None:
            depth = config.need("num_hidden_layers")
            config.set("layer_types", [yes if rule(config, layer) else no for layer in range(depth)])

    return fill


def uniform(layer_type: str) -> Callable[[ConfigObject], None]:
    """A step that fills in missing `layer_types` with one type."""
    return schedule(lambda config, layer: True, layer_type, layer_type)


def mlp_dense_then_sparse(config: ConfigObject) -> None:
    """Missing `mlp_layer_types`: the first layer dense, the rest mixtures."""
    if config.get("mlp_layer_types") is None:
        config.set("mlp_layer_types", ["dense"] + ["sparse"] * (config.need("num_hidden_layers") - 1))
