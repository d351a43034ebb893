"""The tree of a Laguna draft, whose layers are asked for under the draft's own numbers.

Source: vLLM 0.33.0 `model_executor/models/laguna_dflash.py` and `laguna.py`.
"""

from collections.abc import Mapping
from typing import Any

from dflash_audit.engines.vllm.assembly import MODEL_DTYPE, Assembly
from dflash_audit.engines.vllm.draft import Draft
from dflash_audit.engines.vllm.fields import Config, integer, needed, real, size, truthy
from dflash_audit.engines.vllm.laguna_mlp import is_mixture, mixture, mlp
from dflash_audit.engines.vllm.quantization.config import QuantConfig
from dflash_audit.engines.vllm.rope import check_base, check_rope
from dflash_audit.hf_config.layer_types import FULL, SLIDING
from dflash_audit.refusal import Refused
from dflash_audit.tree import Kind, Parameter, Placement, Tree


def build(model_class: str, draft: Draft, quant: QuantConfig | None, tp: int, capability: int) -> Tree:
    """Build the tree; raises as `draft.build` does."""
    config, assembly = draft.config, Assembly(quant, tp, capability, Tree())
    if config.get("draft_vocab_size") is None:
        raise Refused("a Laguna draft's config requires draft_vocab_size")
    if size(config, "draft_vocab_size") != draft.target.vocab_size:
        raise Refused("a Laguna draft shares its target's head: draft_vocab_size must be its vocabulary")
    assembly.container("", model_class)
    _model(assembly, draft)
    own = size(config, "draft_vocab_size")
    assembly.head("lm_head", own, draft.hidden_size, "lm_head", quantized=False, shared=True)
    return assembly.tree


def _model(assembly: Assembly, draft: Draft) -> None:
    config, hidden = draft.config, draft.hidden_size
    ids = needed(draft.inner, "target_layer_ids")
    if not ids or not isinstance(ids, list | str):
        raise Refused("a Laguna draft's config requires dflash_config.target_layer_ids")
    types = _layer_types(draft)
    assembly.container("model", "DFlashLagunaModel")
    tokens = integer(config, "vocab_size")
    assembly.embedding("model.embed_tokens", tokens, hidden, "model.embed_tokens")
    assembly.container("model.layers", "ModuleList")
    for layer in range(draft.num_layers):
        _layer(assembly, draft, layer, types[layer] == SLIDING)
    features = len(ids) * draft.target.hidden_size
    assembly.container("model.aux_hidden_norms", "ModuleList")
    for tap in range(len(ids)):
        assembly.norm(f"model.aux_hidden_norms.{tap}", draft.target.hidden_size)
    assembly.replicated("model.fc", features, hidden, "model.fc")
    assembly.norm("model.hidden_norm", hidden)
    assembly.norm("model.norm", hidden)
    real(config, "rms_norm_eps")


def _layer_types(draft: Draft) -> list[str]:
    types = draft.config.get("layer_types")
    if not isinstance(types, list):
        raise Refused("a Laguna draft's config requires layer_types")
    if len(types) != draft.num_layers:
        raise Refused(f"layer_types has {len(types)} entries for {draft.num_layers} layers")
    if len(set(types)) > 1:
        raise Refused("a Laguna draft requires uniform layer_types")
    return types


def _layer(assembly: Assembly, draft: Draft, layer: int, slides: bool) -> None:
    config, hidden, name = draft.config, draft.hidden_size, f"model.layers.{layer}"
    assembly.container(name, "LagunaDecoderLayer")
    per_layer = config.get("num_attention_heads_per_layer")
    if per_layer is not None and (not isinstance(per_layer, list) or layer >= len(per_layer)):
        raise Refused(f"num_attention_heads_per_layer has no entry for layer {layer}")
    heads = integer(config, "num_attention_heads") if per_layer is None else int(per_layer[layer])
    _attention(assembly, draft, f"{name}.self_attn", layer, heads, slides)
    mlps = config.get("mlp_layer_types")
    if not isinstance(mlps, list) or layer >= len(mlps):
        raise Refused("a Laguna draft's config requires mlp_layer_types")
    if is_mixture(config, mlps[layer]):
        mixture(assembly, config, hidden, f"{name}.mlp")
    else:
        mlp(assembly, config, hidden, integer(config, "intermediate_size"), f"{name}.mlp")
    assembly.norm(f"{name}.input_layernorm", hidden)
    assembly.norm(f"{name}.post_attention_layernorm", hidden)


def _attention(assembly: Assembly, draft: Draft, name: str, layer: int, heads: int, slides: bool) -> None:
    config, hidden = draft.config, draft.hidden_size
    kv_heads = integer(config, "num_key_value_heads")
    head_dim = integer(config, "head_dim") if config.get("head_dim") else hidden // heads
    bias, gating = truthy(needed(config, "attention_bias")), needed(config, "gating")
    if heads % assembly.tp or kv_heads <= 0 or heads % kv_heads:
        raise Refused(f"num_heads ({heads}) is not divisible by num_kv_heads ({kv_heads})")
    sunk = slides and truthy(config.get("swa_attention_sink_enabled", False))
    sink = Parameter("sink", (heads // assembly.tp,), MODEL_DTYPE, Placement(Kind.SHARDED))
    assembly.container(name, "LagunaAttention", *((sink,) if sunk else ()))
    assembly.qkv(f"{name}.qkv_proj", hidden, head_dim, heads, kv_heads, f"{name}.qkv_proj", bias)
    assembly.row(f"{name}.o_proj", heads * head_dim, hidden, f"{name}.o_proj", bias)
    if gating:
        outputs = heads if gating is True or gating == "per-head" else heads * head_dim
        assembly.column(f"{name}.g_proj", hidden, outputs, f"{name}.g_proj")
    check_rope({"rope_parameters": _rope(config, SLIDING if slides else FULL)}, head_dim)
    cache = f"model.layers.{layer + draft.target.layers}.self_attn.attn"
    assembly.attention(f"{name}.attn", cache, head_dim, sunk)
    assembly.norm(f"{name}.q_norm", head_dim)
    assembly.norm(f"{name}.k_norm", head_dim)


def _rope(config: Config, layer_type: str) -> Any:
    """The rotary parameters of a layer: nested by layer type, or the same for all."""
    top = config.get("rope_parameters") or {}
    if not isinstance(top, Mapping):
        raise Refused(f"the rope parameters must be an object, got {top!r}")
    if any(isinstance(value, Mapping) for value in top.values()):
        top = top.get(layer_type) or top.get(FULL) or {}
    own = config.get("swa_rope_parameters") if layer_type != FULL else None
    if own is None and top:
        check_base(top, config, layer_type)
    chosen = top if own is None else own
    factor = config.get("partial_rotary_factor")
    if factor is not None and isinstance(chosen, Mapping) and "partial_rotary_factor" not in chosen:
        return {**chosen, "partial_rotary_factor": factor}
    return chosen
