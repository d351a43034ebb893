"""Changes of what a checkpoint holds, picked by an input: of a JSON document, and of a list of tensors."""

import json
import math
from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final

from dflash_audit.dtypes import BITS
from dflash_audit.sources.safetensors_header import Layout
from fuzzing.cases import Tensors
from fuzzing.draw import Draw

MOST_EDITS: Final = 4


def _deep(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


NUMBERS: Final = (
    0, 1, 2, 3, -1, 64, 2**31, 2**63, 2**64, 10**9, 10**307, 10**400, 10**4200, 0.5, -0.0, 1e308, math.nan,
    math.inf, -math.inf,
)  # fmt: skip
TEXTS: Final = (
    "", "1", "1_000", "1e5", "nan", "a" * 5000, "\x1b[31m", "\ud800", "::error::x", "\n", "\0", "<script>",
    "|", "re:(a+)+$", "re:[", "re:.*", "../../x", "Linear", "layers.0.self_attn.q_proj", "bfloat16",
    "sliding_attention", "int", "float", "channel", "group", "tensor", "block", "group_0", "static", "auto",
    "FP8", "NVFP4", "fp8", "awq", "gptq", "modelopt", "compressed-tensors", "auto-round", "w8a8_int8",
    "qwen3", "llama", "DFlashDraftModel", "yarn", "LiLiCorrDraftModel", "Qwen3DSparkModel",
    "DFlash2DraftModel", "DFlashLagunaForCausalLM", "dynamic", "linear",
)  # fmt: skip
OTHERS: Final[tuple[Any, ...]] = (
    None, True, False, [], {}, [None], [[]], {"": {}}, {"__float__": "NaN"}, [0, 1], [-1], [10**9],
    ["", ""], _deep(50), _deep(150), ["re:(a+)+$"] * 3, ["full_attention", "sliding_attention"],
    {"rope_type": "yarn", "factor": 1e308}, {"dtype": "bfloat16"}, [1, "a", None],
)  # fmt: skip
VALUES: Final = (*NUMBERS, *TEXTS, *OTHERS)
KEYS: Final = (
    "num_hidden_layers", "hidden_size", "head_dim", "vocab_size", "intermediate_size",
    "num_attention_heads", "num_key_value_heads", "layer_types", "sliding_window", "use_sliding_window",
    "rope_parameters", "rope_scaling", "rope_theta", "dflash_config", "block_size", "target_layer_ids",
    "mask_token_id", "num_target_layers", "model_type", "architectures", "quantization_config",
    "compression_config", "dtype", "torch_dtype", "num_labels", "id2label", "attention_bias", "hidden_act",
    "rms_norm_eps", "max_position_embeddings", "auto_map", "text_config", "eos_token_id",
    "tie_word_embeddings", "attention_sink_bias", "conv_kernel_size", "conv_group_size", "selector_rank",
    "max_window_layers", "ignore", "config_groups", "targets", "weights", "input_activations", "num_bits",
    "group_size", "strategy", "symmetric", "actorder", "block_structure", "kv_cache_scheme",
    "sparsity_config", "format", "quant_method", "quant_algo", "bits", "sym", "desc_act", "zero_point",
    "modules_to_not_convert", "ignored_layers", "weight_block_size", "activation_scheme", "dynamic",
    "extra_config", "exclude_modules", "quantized_layers", "dflash", "partial_rotary_factor",
    "quantization", "speculators_config", "speculators_model_type", "transformer_layer_config",
    "draft_vocab_size", "aux_hidden_state_layer_ids", "eagle_aux_hidden_state_layer_ids",
    "proposal_methods", "speculative_tokens", "algorithms", "verifier", "target_hidden_size", "markov_rank",
    "markov_head_type", "projector_type", "sample_from_anchor", "is_causal", "causal", "has_own_lm_head",
    "has_lm_head", "has_embed_tokens", "num_experts", "mlp_layer_types", "swa_window_size", "swa_head_dim",
    "v_head_dim", "use_swa", "gating", "rope_type", "factor", "type", "original_max_position_embeddings",
    "mrope_section", "low_freq_factor", "high_freq_factor", "long_factor", "short_factor", "beta_fast",
    "beta_slow", "attention_factor", "mscale", "kv_cache_quant_algo", "producer", "packed_modules_mapping",
    "transform_config", "output_activations", "scale_dtype", "zp_dtype", "observer", "observer_kwargs",
    "block_name_to_quantize", "data_type", "packing_format", "modules_in_block_to_quantize",
    "is_marlin_format", "checkpoint_format", "version", "backend", "lm_head", "enable_confidence_head",
    "confidence_head_with_markov", "dspark_config", "dspark_block_size", "dspark_target_layer_ids",
    "lilicorr_enabled", "lilicorr_num_layers", "lilicorr_mlp_ratio", "xpress_block_size",
    "output_multiplier", "input_embedding_scale", "final_logit_softcapping",
    "num_attention_heads_per_layer", "sliding_window_non_causal", "hybrid_layer_pattern",
    "layer_rope_theta", "emb_dim", "__float__", "thinker_config", "linear_attn_config", "compress_ratios",
    "model", "name", "norm_before_fc",
)  # fmt: skip


def edit(document: Any, draw: Draw) -> None:
    """One change at a place that is walked to from the root."""
    place = document
    for _ in range(draw.number() % 4):
        inner = [
            value
            for value in (place.values() if isinstance(place, dict) else place)
            if value and isinstance(value, dict | list)
        ]
        if not inner:
            break
        place = draw.one_of(inner)
    keys: list[Any] = [*place] if isinstance(place, dict) else [*range(len(place))]
    act = draw.number() % 4
    if act == 0 and keys:
        del place[draw.one_of(keys)]
    elif act == 1 and isinstance(place, dict):
        place[draw.one_of(KEYS)] = _value(draw)
    elif act == 1:
        place.append(_value(draw))
    elif keys:
        place[draw.one_of(keys)] = _value(draw) if act == 2 else draw.text()


def _value(draw: Draw) -> Any:
    return deepcopy(draw.one_of(VALUES))  # a later edit may go into it


def documents_of(files: Mapping[str, str]) -> dict[str, Any]:
    """What they hold, to edit."""
    return {name: json.loads(text) for name, text in files.items()}


def edited_files(files: Mapping[str, str], draw: Draw) -> dict[str, bytes]:
    """JSON files with a few edits, of what they hold or of their bytes."""
    documents = documents_of(files)
    for _ in range(draw.number() % (MOST_EDITS + 1)):
        edit(draw.one_of([*documents.values()]), draw)
    edited = {name: json.dumps(document).encode() for name, document in documents.items()}
    if draw.number() % 16 == 1:
        name = draw.one_of([*edited])
        raw, at = edited[name], draw.number(2) % (len(edited[name]) + 1)
        text = draw.text().encode("utf-8", "surrogateescape")
        edited[name] = raw[:at] + text + raw[at + draw.number() % 8 :]
    return edited


def edited_tensors(tensors: Tensors, draw: Draw) -> Layout:
    """What a header says after a few edits; a tensor of no whole bytes, or of too many, cannot be in one."""
    layout = {name: (dtype, tuple(shape)) for name, (dtype, shape) in tensors.items()}
    for _ in range(draw.number() % (MOST_EDITS + 1)):
        _edit_tensor(layout, draw)
    return {name.encode("utf-8", "replace").decode(): told for name, told in layout.items() if _fits(*told)}


def _edit_tensor(layout: dict[str, tuple[str, tuple[int, ...]]], draw: Draw) -> None:
    name = draw.one_of([*layout]) if layout else ""
    dtype, shape = layout.pop(name, ("F32", (1,)))
    act = draw.number() % 6
    if act == 1:
        layout[name] = dtype, (*shape, 1) if draw.number() % 2 else shape[:-1]
    elif act == 2:
        layout[name] = draw.one_of([*BITS]), tuple(draw.one_of(SIZES) for _ in shape)
    elif act == 3:
        layout[draw.text()] = dtype, shape
    elif act == 4:
        layout["layers.0." + draw.one_of(TEXTS)] = dtype, shape
    elif act == 5:
        owner, _, _ = name.rpartition(".")
        layout[name] = dtype, shape
        layout[f"{owner}.{draw.one_of(LAST_NAMES)}"] = draw.one_of([*BITS]), (draw.one_of(SIZES),) * 2


def _fits(dtype: str, shape: tuple[int, ...]) -> bool:
    bits = math.prod(shape) * BITS[dtype]
    return bits % 8 == 0 and bits < 2**62


SIZES: Final = (0, 1, 2, 8, 64, 2**20)
LAST_NAMES: Final = (
    "weight", "bias", "weight_scale", "weight_packed", "weight_shape", "weight_g_idx", "qweight", "qzeros",
    "scales", "g_idx", "weight_zero_point", "weight_scale_2", "weight_scale_inv", "input_scale",
    "weight_global_scale", "input_global_scale", "k_scale",
)  # fmt: skip
