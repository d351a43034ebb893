"""What goes wrong with a checkpoint: tensors lost, renamed, recast or reshaped, configs misspelt."""

import copy
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from random_drafts.case import Case, fuse

DTYPES: Final = (
    "F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2", "F8_E8M0", "I64", "I32", "I16", "I8", "U8", "U16",
    "U32", "U64", "BOOL", "F4",
)  # fmt: skip


def delete(case: Case, name: str) -> None:
    del case.tensors[name]


def delete_kind(case: Case, name: str) -> None:
    """Delete a tensor in every layer."""
    leaf = name.split(".")[-2:]
    for other in [other for other in case.tensors if other.split(".")[-2:] == leaf]:
        del case.tensors[other]


def rename(case: Case, name: str) -> None:
    last = name.rpartition(".")[2]
    new = case.pick(
        f"{name}_old", f"model.model.{name}", name.replace("q_proj", "q_proj.q_proj"),
        name.partition(".")[2], f"x.{name}", name.replace("self_attn.", ""),
        name.replace("up_proj", "gate_proj"), name.replace("layers.0", "layers.00"),
        name.replace("proj.", "proj.base_layer."), name.replace("weight", "Weight"),
        name.replace("fc.", "encoder.encoder.fc."), name.replace("hidden_norm.", "encoder.output_norm_enc."),
        name.replace("norm.", "norm.norm."), name.replace("_proj", "_projection"),
        name.replace("layers.", "blocks."), f"encoder.{name}", f"model.{name}",
        name.replace("self_attn", "attn"), name.removesuffix(last) + "weight", name.upper(),
        name.replace("weight_packed", "qweight"), name.replace("weight_scale", "weight_scale_inv"),
        f"{name}.weight", name.replace("q_proj", "qkv_proj"), name.replace("gate_proj", "gate_up_proj"),
        name.replace("fc.", "encoder.fc."), name.replace("layers.0.", "layers.1."),
        name.replace(".weight", ""), name.replace("weight_scale", "scales"),
    )  # fmt: skip
    case.tensors[new] = case.tensors.pop(name)


def recast(case: Case, name: str) -> None:
    _recast(case, name, case.pick(*DTYPES))


def _recast(case: Case, name: str, dtype: str) -> None:
    shape = case.tensors[name][1]
    if dtype != "F4" or (shape and shape[-1] % 2 == 0):  # a file holds whole bytes
        case.tensors[name] = (dtype, shape)


def recast_kind(case: Case, name: str) -> None:
    """Give every tensor of the same own name another dtype."""
    dtype, leaf = case.pick(*DTYPES), name.rpartition(".")[2]
    for other in [other for other in case.tensors if other.rpartition(".")[2] == leaf]:
        _recast(case, other, dtype)


def reshape(case: Case, name: str) -> None:
    dtype, shape = case.tensors[name]
    if dtype == "F4":
        return
    axis = case.rng.randrange(len(shape)) if shape else 0
    size = shape[axis] if shape else 1
    variants = [
        [*shape[:axis], size // 2, *shape[axis + 1 :]], [*shape[:axis], size * 2, *shape[axis + 1 :]],
        [*shape[:axis], size + 1, *shape[axis + 1 :]], [*shape[:axis], max(size - 1, 0), *shape[axis + 1 :]],
        [1, *shape], [*shape, 1], shape[::-1], shape[1:], shape[:-1], [math.prod(shape)], [1], [],
    ]  # fmt: skip
    case.tensors[name] = (dtype, case.rng.choice(variants))


def add(case: Case, name: str) -> None:
    """A tensor that should not be there."""
    module, _, leaf = name.rpartition(".")
    new = case.pick(
        "lm_head.weight", "model.lm_head.weight", "embed_tokens.weight",
        "layers.0.self_attn.rotary_emb.inv_freq", "d2t", "layers.0.self_attn.q_proj.bias",
        "layers.0.self_attn.k_proj.k_scale", "layers.0.self_attn.attn.k_scale",
        "layers.7.mlp.up_proj.weight", "fc.bias", "encoder.fc.weight", "encoder.output_norm_enc.weight",
        "norm.bias", "confidence_head.proj.weight", "markov_head.extra", "prefix_gru.weight_ih_l0",
        "model.embed_proj.0.weight", "layers.0.self_attn.qkv_proj.weight",
        "layers.0.mlp.gate_up_proj.weight", "lilicorr.extra.weight",
        "layers.0.self_attn.attention_sink_bias", "layers.0.mlp_conv.base_kernel", "rotary_emb.inv_freq",
        f"{module}.weight_scale", f"{module}.input_scale", f"{module}.weight", f"{module}.bias",
        f"{module}.extra", f"{module}.weight_zero_point", f"{module}.g_idx", f"model.{name}",
        "layers.0.self_attn.v_proj.v_scale", "layers.0.self_attn.attn.v_scale", f"{module}.kv_scale",
        f"{module}.weight_scale_2", f"{module}.{leaf}.{leaf}",
    )  # fmt: skip
    shape = case.pick([16, 16], [], [1], [case.sizes.heads], [case.sizes.hidden], case.tensors[name][1])
    case.tensors[new] = (case.pick("BF16", "F32", "F8_E4M3", "U8"), shape)


def duplicate(case: Case, name: str) -> None:
    """The tensor a second time, under its name below `model.` or above it."""
    other = name.removeprefix("model.") if name.startswith("model.") else f"model.{name}"
    case.tensors[other] = case.tensors[name]


def stored_fused(case: Case, name: str) -> None:
    del name
    fuse(
        case,
        *case.pick(("qkv_proj", ("q_proj", "k_proj", "v_proj")), ("gate_up_proj", ("gate_proj", "up_proj"))),
    )


def prefix(case: Case, name: str) -> None:
    del name
    case.rename("", case.pick("model.", "model.", "draft.", "model.model.", "module."))


def change_config(case: Case, name: str) -> None:
    """A key of the config removed, nulled, retyped or renumbered."""
    del name
    inner = case.dflash
    where = inner if inner and case.chance(0.4) else case.config
    key = case.rng.choice(
        [key for key in sorted(where) if key not in ("quantization_config", "architectures")] or ["x"]
    )
    value = where.get(key)
    match case.rng.randrange(4):
        case 0:
            where.pop(key, None)
        case 1:
            where[key] = None
        case 2:
            where[key] = case.pick(str(value), [value], {"value": value}, -1, -1.5, *[odd_value(case)] * 5)
        case _ if isinstance(value, int) and not isinstance(value, bool):
            where[key] = case.pick(
                value + 1, value * 2, value // 2, max(value - 1, 0), float(value), str(value)
            )
        case _:
            where.pop(key, None)


def nest_quantization(case: Case, name: str) -> None:
    """The quantization config of config.json moved into the config of the text model."""
    del name
    if "quantization_config" in case.config:
        case.config["text_config"] = {
            **case.pick({}, case.config),
            "quantization_config": case.config.pop("quantization_config"),
        }


def add_config(case: Case, name: str) -> None:
    """A key that the draft did not have, in a place where the engine reads one."""
    del name
    where, key, value = case.pick(
        (case.config, "attention_bias", True), (case.config, "use_gemma_norm", True),
        (case.config, "gating", "per-head"), (case.config, "text_config", {}),
        (case.config, "text_config", {"hidden_size": 64}), (case.config, "hidden_act", "gelu"),
        (case.dflash, "attention_sink_bias", True), (case.dflash, "attention_sink_bias", 1),
        (case.dflash, "conv_kernel_size", 2), (case.dflash, "projector_type", "domino"),
        (case.dflash, "projector_type", "dspark"), (case.dflash, "selector_rank", 16),
        (case.config, "is_causal", "yes"), (case.config, "quantization_config", {}),
        (case.config, "markov_rank", 16), (case.config, "architectures", []),
        (case.config, "architectures", ["DFlash2DraftModel", "DFlashDraftModel"]),
        (case.config, "architectures", ["Qwen3DSparkModel"]),
        (case.config, "architectures", ["LiLiCorrDraftModel"]),
        (case.config, "architectures", ["DFlashLagunaForCausalLM"]),
        (case.config, "architectures", ["NoSuchModel"]),
        (case.config, "architectures", ["MuseGlimmerAssistantModel"]),
        (case.config, "rope_parameters", {"rope_dim": "16"}), (case.config, "num_key_value_heads", None),
        (case.config, "head_dim", None), (case.config, "layer_types", "sliding"),
        (case.config, "layer_types", ["chunked_attention"] * 4), (case.config, "dspark_block_size", 4),
        (case.config, "dspark_markov_rank", 16), (case.config, "dspark_target_layer_ids", [1, 2]),
        (case.dflash, "emb_dim", 8), (case.config, "has_embed_tokens", True),
        (case.config, "dtype", "float32"), (case.config, "torch_dtype", "float16"),
        (case.config, "dflash_config", None), (case.config, "dflash_config", []),
        (case.config, "dflash_config", "x"), (case.config, "text_config", dict(case.config)),
        (case.config, "text_config", None), (case.config, "text_config", []),
        (case.config, "decoder", {"hidden_size": 64}), (case.config, "use_sliding_window", False),
        (case.config, "is_causal", []), (case.config, "auto_map", {"AutoModel": "dflash.DFlashDraftModel"}),
        (case.config, "layer_types", []), (case.config, "speculators_model_type", "dflash"),
        (case.config, "draft_vocab_size", 32), (case.config, "pad_token_id", 0),
        (case.config, "attention_value_scale", 2.0), (case.dflash, "attention_value_scale", "1"),
        (case.dflash, "block_size", 1),
    )  # fmt: skip
    where[key] = value


ODD: Final[tuple[Any, ...]] = (
    None, True, False, 0, 1, -1, 2, 4, 8, 16, 128, 4.0, 1.5, "", "x", "4", "fp8", "fc", [], {}, ["fc"], [5],
    [128, 128], {"a": 1}, ["layers.0"], "Linear", "FP8", "NVFP4", "dynamic", "static", "auto", [[1]], 1e30,
    "re:.*", [None], {"fc": {}},
)  # fmt: skip
"""Values that a config may hold by mistake."""


def odd_value(case: Case) -> Any:
    return copy.deepcopy(case.rng.choice(ODD))


def change_quantization(case: Case, name: str) -> None:
    """A value anywhere in the quantization config removed or replaced."""
    del name
    places = [place for value in (case.declared, *case.files.values()) for place in _places(value)]
    if not places:
        return
    holder, key = case.rng.choice(places)
    if case.chance(0.25):
        del holder[key]
    else:
        holder[key] = odd_value(case)


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every (object or list, key or index) in a JSON value."""
    keys: Iterable[Any] = (
        value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    )
    return [place for key in keys for place in [(value, key), *_places(value[key])]]


def change_rope(case: Case, name: str) -> None:
    """A rotary parameter removed, added or retyped."""
    del name
    rope = case.config.get("rope_parameters") or case.config.get("rope_scaling")
    if not isinstance(rope, dict):
        rope = case.config["rope_parameters"] = {"rope_type": "default"}
    key = case.pick(
        *sorted(rope), "rope_type", "rope_dim", "factor", "rope_theta", "mrope_section", "beta_fast",
        "attn_factor", "original_max_position_embeddings", "alpha", "low_freq_factor",
        "partial_rotary_factor", "truncate", "use_fope",
    )  # fmt: skip
    if case.chance(0.2):
        rope.pop(key, None)
    else:
        rope[key] = case.pick(
            None, "x", "2", 2, 2.0, 0, -1, [], [8, 4, 4], {}, {"a": 1}, True, "yarn", "longrope",
            "proportional", "dynamic", "llama3", "deepseek_yarn", "mrope", 16, 1.5,
        )  # fmt: skip


FAULTS: Final[Mapping[Callable[[Case, str], None], float]] = {
    delete: 3,
    delete_kind: 1,
    rename: 3,
    recast: 4,
    recast_kind: 1.5,
    reshape: 4,
    add: 4,
    duplicate: 1,
    stored_fused: 1,
    prefix: 0.7,
    change_config: 1.5,
    add_config: 1.5,
    change_rope: 0.5,
    change_quantization: 1,
    nest_quantization: 0.3,
}
"""Fault -> how often."""
