"""The DFlash fields of a draft's config, parsed and validated.

Source: SGLang 0.5.23 `srt/speculative/dflash_utils.py`.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from dflash_audit.engines.sglang.conversions import Config, integer, optional_integer, real, whole
from dflash_audit.hf_config import decoder_part
from dflash_audit.refusal import Refused

DEFAULT_BLOCK_SIZE: Final = 16
DEFAULT_MASK_TOKEN: Final = "<|MASK|>"


class Domino(NamedTuple):
    """The projector of a Domino draft; with `shift_label` a slot is predicted by the row before it."""

    gru_hidden_dim: int
    emb_dim: int
    shift_label: bool


class DFlashConfig(NamedTuple):
    """`DFlashDraftConfig`: what is built and how it computes; a cap or scale is None where there is none."""

    num_target_layers: int | None
    block_size: int
    conv_kernel_size: int
    conv_group_size: int
    selector_rank: int
    selector_top_k: int
    output_multiplier: float
    final_logit_softcapping: float | None
    target_layer_ids: tuple[int, ...] | None
    mask_token_id: int | None
    projector_type: Any
    domino: Domino | None
    attention_sink_bias: bool
    attention_value_scale: float | None


class AttentionType(NamedTuple):
    """What a layer sees: `window` positions back, None for all; with `causal` none ahead."""

    window: int | None
    causal: bool


def nested(config: Config) -> Config:
    """The `dflash_config` object, empty where there is none."""
    value = config.get("dflash_config")
    return value if isinstance(value, Mapping) else {}


def text_config(config: Config) -> Config:
    """The config of the text model: `text_config`, or the decoder's part of the config.

    Raises:
        Refused: the config names two decoders.
    """
    value = config.get("text_config")
    part = decoder_part(config) if value is None else value
    return part if isinstance(part, Mapping) else {}


def parse(config: Config) -> DFlashConfig:
    """Parse and validate (`parse_dflash_draft_config`).

    Raises:
        Refused: a field is of the wrong type or out of range, or lacks its partner.
    """
    inner = nested(config)

    def either(key: str) -> Any:
        return inner.get(key, config.get(key))

    optional_integer(text_config(config).get("num_hidden_layers"), "num_hidden_layers", 1)
    num_target_layers = optional_integer(either("num_target_layers"), "num_target_layers", 1, whole)
    block_size = optional_integer(either("block_size"), "block_size", 1)
    kernel, group = _pair(inner, "conv_kernel_size", "conv_group_size")
    rank, top_k = _pair(inner, "selector_rank", "selector_top_k")
    multiplier, softcap = _logits(inner)
    target_layer_ids = _layer_ids(either("target_layer_ids"))
    _check_mask_token(either("mask_token"))
    mask_token_id = _mask_token_id(either("mask_token_id"))
    sinks = _sinks(inner)
    value_scale = _value_scale(inner)
    projector_type = either("projector_type")
    domino = _domino(config, inner, block_size) if projector_type == "domino" else None
    return DFlashConfig(
        num_target_layers=num_target_layers,
        block_size=DEFAULT_BLOCK_SIZE if block_size is None else block_size,
        conv_kernel_size=kernel,
        conv_group_size=group,
        selector_rank=rank,
        selector_top_k=top_k,
        output_multiplier=multiplier,
        final_logit_softcapping=softcap,
        target_layer_ids=target_layer_ids,
        mask_token_id=mask_token_id,
        projector_type=projector_type,
        domino=domino,
        attention_sink_bias=sinks,
        attention_value_scale=value_scale,
    )


def taps(parsed: DFlashConfig, num_layers: int) -> tuple[int, ...]:
    """The target layers whose hidden states feed `fc`.

    Raises:
        Refused: an id is out of range, or too few target layers to space the default ids over.
    """
    if parsed.target_layer_ids is None:
        layers = num_layers if parsed.num_target_layers is None else parsed.num_target_layers
        return _spaced(layers, num_layers)
    ids = parsed.target_layer_ids
    layers = max(ids) + 1 if parsed.num_target_layers is None else parsed.num_target_layers
    if layers <= 0:
        raise Refused(f"target_num_layers must be positive, got {layers}")
    for index, layer in enumerate(ids):
        if not 0 <= layer < layers:
            raise Refused(
                f"target_layer_ids[{index}]={layer} is out of range: the target has {layers} layers"
            )
    return ids


def is_nemotron_35(config: Config) -> bool:
    """Whether this is the Nemotron 3.5 layout, by all of its conditions (`is_nemotron_35_draft_config`)."""
    architectures = config.get("architectures") or []
    if not {"DFlashDraftModel", "Qwen3DSparkModel"}.intersection(architectures):
        return False
    if not config.get("has_embed_tokens", False) or config.get("has_lm_head", False):
        return False
    quantization = config.get("quantization_config") or {}
    if not isinstance(quantization, Mapping) or quantization.get("quant_algo") != "W4A16_NVFP4":
        return False
    inner = nested(config)
    ids = inner.get("target_layer_ids", config.get("target_layer_ids"))
    aux = config.get("eagle_aux_hidden_state_layer_ids")
    if not ids or not aux:
        return False
    # A text has a length too, and layers one by one.
    if not isinstance(ids, list | str | Mapping) or not isinstance(aux, list | str | Mapping):
        raise Refused("target_layer_ids and eagle_aux_hidden_state_layer_ids must be lists")
    if len(ids) != len(aux) or any(_shifted(a, b) for a, b in zip(ids, aux, strict=True)):
        return False
    return inner.get("sample_from_anchor", config.get("sample_from_anchor", True)) is False


def attention_type(config: Config, layer: int) -> AttentionType:
    """The attention type of a layer (`_get_dflash_layer_attention_params`).

    A window of one position is none: `RadixAttention` takes the 0 that is left
    of it, without the position itself, for no window.

    Raises:
        Refused: `layer_types` is too short or unknown, or sliding layers have no window.
    """
    text = text_config(config)
    layer_types = text.get("layer_types", config.get("layer_types"))
    if layer_types is None:
        return AttentionType(None, causal=False)
    if not isinstance(layer_types, list):
        raise Refused("layer_types must be a list of attention types")
    if layer >= len(layer_types):
        raise Refused(f"layer_types has {len(layer_types)} entries, none for layer {layer}")
    kind, causal = layer_types[layer], text.get("is_causal")
    if kind == "sliding_attention":
        window = integer(_window(config, text), "sliding_window") - 1
        return AttentionType(window if window > 0 else None, causal is None or bool(causal))
    if kind != "full_attention":
        raise Refused(f"layer_types[{layer}]={kind!r} is not an attention type of a DFlash draft")
    return AttentionType(None, bool(causal))


def _window(config: Config, text: Config) -> Any:
    window = text.get("sliding_window", config.get("sliding_window"))
    if window is None and is_nemotron_35(config):
        window = nested(config).get("swa_window_size")
    if window is None:
        raise Refused("sliding_attention layers need sliding_window, which is null or missing")
    return window


def _shifted(target: Any, aux: Any) -> bool:
    return integer(target, "target_layer_ids") + 1 != integer(aux, "eagle_aux_hidden_state_layer_ids")


def _pair(inner: Config, first: str, second: str) -> tuple[int, int]:
    """Two counts that are both set or both zero; null is taken for zero in that comparison."""
    a = optional_integer(inner.get(first, 0), first, 0)
    b = optional_integer(inner.get(second, 0), second, 0)
    if bool(a) != bool(b):
        raise Refused(f"{first} and {second} are needed together, got {a} and {b}")
    return a or 0, b or 0


def _logits(inner: Config) -> tuple[float, float | None]:
    """What the head's logits are multiplied by, and what caps them."""
    multiplier = real(inner.get("output_multiplier", 1.0), "output_multiplier")
    if multiplier <= 0:
        raise Refused("output_multiplier must be positive")
    softcap = real(inner.get("final_logit_softcapping") or 0.0, "final_logit_softcapping")
    return multiplier, softcap if softcap > 0 else None


def _layer_ids(value: Any) -> tuple[int, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list):
        raise Refused(f"target_layer_ids must be a list of integers, got {value!r}")
    if not value:
        raise Refused("target_layer_ids must not be empty")
    return tuple(integer(layer, "target_layer_ids") for layer in value)


def _check_mask_token(value: Any) -> None:
    token = DEFAULT_MASK_TOKEN if value is None else value
    if not isinstance(token, str) or not token:
        raise Refused(f"mask_token must be a string that is not empty, got {value!r}")


def _mask_token_id(value: Any) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        raise Refused(f"mask_token_id must be an integer, got {value!r} ({type(value).__name__})")
    if value < 0:
        raise Refused(f"mask_token_id must not be negative, got {value}")
    return value


def _sinks(inner: Config) -> bool:
    sinks = inner.get("attention_sink_bias", False)
    if not isinstance(sinks, bool):
        raise Refused(f"dflash_config.attention_sink_bias must be true or false, got {sinks!r}")
    return sinks


def _value_scale(inner: Config) -> float | None:
    scale = inner.get("attention_value_scale")
    if scale is not None and (isinstance(scale, bool) or not isinstance(scale, int | float)):
        raise Refused(f"dflash_config.attention_value_scale must be a number, got {scale!r}")
    return None if scale is None else float(scale)


def _domino(config: Config, inner: Config, block_size: int | None) -> Domino:
    def either(key: str) -> Any:
        return inner.get(key, config.get(key))

    prefix = optional_integer(either("pure_draft_prefix_len"), "pure_draft_prefix_len", 0)
    gru = optional_integer(either("gru_hidden_dim"), "gru_hidden_dim", 1)
    own = optional_integer(inner.get("emb_dim"), "dflash_config.emb_dim", 1)
    outer = optional_integer(config.get("emb_dim"), "emb_dim", 1)
    if own is not None and outer is not None and own != outer:
        raise Refused(f"emb_dim differs between dflash_config and the config: {own} and {outer}")
    emb = own if own is not None else outer
    shift_label = either("shift_label")
    if not isinstance(shift_label, bool):
        raise Refused(f"a Domino draft needs shift_label, true or false, got {shift_label!r}")
    if prefix != 1:
        raise Refused(f"a Domino draft needs pure_draft_prefix_len 1, got {prefix!r}")
    if gru is None or emb is None:
        raise Refused(f"a Domino draft needs {'gru_hidden_dim' if gru is None else 'emb_dim'}")
    if block_size is not None and block_size <= 1:
        raise Refused(f"a Domino draft needs a block_size above 1, got {block_size}")
    return Domino(gru, emb, shift_label)


def _spaced(num_target_layers: int, num_layers: int) -> tuple[int, ...]:
    """Target layers spread evenly from the second to the fourth from the end (`build_target_layer_ids`)."""
    if num_target_layers <= 0 or num_layers <= 0:
        raise Refused(f"layers must be positive, got {num_target_layers} and {num_layers}")
    if num_layers == 1:
        return (num_target_layers // 2,)
    first, last = 1, num_target_layers - 3
    if last < first:
        raise Refused(f"default target_layer_ids need at least 4 target layers, got {num_target_layers}")
    try:
        return tuple(round(first + i * (last - first) / (num_layers - 1)) for i in range(num_layers))
    except OverflowError as error:
        raise Refused(f"{num_target_layers} target layers are more than a float holds") from error
