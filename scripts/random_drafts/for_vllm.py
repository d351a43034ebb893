"""Families of drafts that vLLM reads otherwise: own heads, reduced vocabularies, other configs."""

import random
import re
from collections.abc import Callable, Mapping
from typing import Final

from random_drafts import families, targets
from random_drafts.case import Case, Json, fuse
from random_drafts.lists import lists_of
from random_drafts.quantizing import linears
from random_drafts.spellings import fused, last


def laguna(rng: random.Random) -> Case:
    """A Laguna draft with the keys that vLLM asks for, its fused layers stored fused or not."""
    case = families.backbone(rng, "DFlashLagunaForCausalLM")
    s, kind = case.sizes, case.pick("sliding_attention", "full_attention")
    case.config |= {
        "draft_vocab_size": s.vocab if case.chance(0.95) else s.vocab - 1,
        "layer_types": [kind] * s.layers, "sliding_window": 128, "use_sliding_window": True,
        "gating": case.pick("per-head", "per-element", True, False), "num_experts": 0,
        "mlp_layer_types": ["dense"] * s.layers,
    }  # fmt: skip
    if case.chance(0.15):
        del case.config[case.pick("draft_vocab_size", "num_experts", "gating", "layer_types")]
    gating = case.config.get("gating")
    outputs = s.heads * s.head_dim if gating == "per-element" else s.heads
    for layer in range(s.layers if gating else 0):
        case.dense({f"layers.{layer}.self_attn.g_proj.weight": [outputs, s.hidden]})
    for tap in range(s.taps):
        case.dense({f"aux_hidden_norms.{tap}.weight": [s.hidden]})
    if case.chance(0.85):
        fuse(case, "qkv_proj", ("q_proj", "k_proj", "v_proj"))
    return case


def experts(rng: random.Random) -> Case:
    """A Laguna draft some of whose layers are mixtures of experts, or are taken for such."""
    case = laguna(rng)
    layers, sizes = case.sizes.layers, (32, 64, 128, 128, 256, 96, 48)
    kinds = [case.pick("sparse", "dense", "sparse") for _ in range(layers)]
    if case.chance(0.5):
        case.config["model_type"] = "laguna"
    case.config |= {
        "mlp_layer_types": kinds, "num_experts": case.pick(1, 2, 4, 4, 8, 8), "num_experts_per_tok": 1,
        "moe_intermediate_size": case.pick(*sizes), "moe_apply_router_weight_on_input": False,
        "shared_expert_intermediate_size": case.pick(0, *sizes),
    }  # fmt: skip
    if case.chance(0.1):
        case.config |= {"moe_routed_scaling_factor": case.pick(2.5, 1, "2", None)}
    if case.chance(0.15):
        left = ("mlp_layer_types", "num_experts", "moe_intermediate_size", "shared_expert_intermediate_size")
        del case.config[case.pick(*left, "num_experts_per_tok", "moe_apply_router_weight_on_input")]
        case.config |= {"num_experts_per_tok": 1}
    if case.chance(0.75):
        for layer in range(layers):
            if kinds[layer] == "sparse":
                _mixture(case, f"layers.{layer}.mlp.")
    return case


def _mixture(case: Case, at: str) -> None:
    """What of a layer's mixture a checkpoint may hold in the place of its one MLP."""
    hidden, config = case.sizes.hidden, case.config
    number, inner = config.get("num_experts", 4), config.get("moe_intermediate_size", 64)
    for part in ("gate_proj", "up_proj", "down_proj"):
        case.tensors.pop(f"{at}{part}.weight", None)
    case.dense({f"{at}gate.weight": [number, hidden]})
    shared = config.get("shared_expert_intermediate_size", 0)
    if shared:
        _expert(case, f"{at}shared_expert.", hidden, shared)
    routed = f"{at}experts.routed_experts."
    if case.chance(0.3):
        name = case.pick(f"{routed}e_score_correction_bias", f"{at}experts.e_score_correction_bias")
        case.dense({name: [case.pick(number, number, number + 1)]}, case.pick("F32", "BF16"))
    if case.chance(0.2):
        case.dense({f"{routed}w13_weight": [number, 2 * inner, hidden]})
    if case.chance(0.2):
        for expert in range(number):
            _expert(case, f"{at}experts.{expert}.", hidden, inner)


def _expert(case: Case, at: str, hidden: int, inner: int) -> None:
    case.dense({f"{at}{part}.weight": [inner, hidden] for part in ("gate_proj", "up_proj")})
    case.dense({f"{at}down_proj.weight": [hidden, inner]})


def own_head(rng: random.Random) -> Case:
    """A draft with an embedding and a head of its own, some for a part of the vocabulary."""
    case = families.FAMILIES[rng.choice(("dflash", "dflash2", "dspark", "bias"))](rng)
    _own_head(case)
    return case


def _own_head(case: Case) -> None:
    s, own = case.sizes, case.sizes.vocab
    if case.chance(0.5):
        own = case.config["draft_vocab_size"] = case.pick(32, 48, s.vocab // 2, s.vocab, s.vocab + 64)
    if case.chance(0.7):
        case.dense({"embed_tokens.weight": [s.vocab, s.hidden]})
    if case.chance(0.8):
        case.dense({"lm_head.weight": [own, s.hidden]})
    if own != s.vocab or case.chance(0.1):
        if case.chance(0.85):
            case.dense({"d2t": [own]}, "I64")
        if case.chance(0.7):
            case.dense({"t2d": [s.vocab]}, "BOOL")
    if "markov_head.markov_w2.weight" in case.tensors and case.chance(0.8):
        case.dense({"markov_head.markov_w2.weight": [own, case.config["markov_rank"]]})
    if case.chance(0.3):
        case.config["has_own_lm_head"] = case.pick(True, False)


def speculators(rng: random.Random) -> Case:
    """A draft of the speculators library: the layer's config below one key, the rest beside it."""
    kind = rng.choice(("dflash", "dflash", "dflash2", "dspark"))
    case = families.FAMILIES[kind](rng)
    inner, layer = case.dflash, dict(case.config)
    ids = case.setting("target_layer_ids")
    config: Json = {
        "speculators_model_type": kind,
        "architectures": layer.pop("architectures") if kind == "dspark" else [f"{kind}Speculator"],
        "speculators_config": {
            "algorithm": kind, "default_proposal_method": "greedy",
            "proposal_methods": [{"proposal_type": "greedy", "speculative_tokens": 7}],
            "verifier": {"name_or_path": "some/target", "architectures": ["Qwen3ForCausalLM"]},
        },
        "aux_hidden_state_layer_ids": [each + 1 for each in ids],
        "mask_token_id": case.setting("mask_token_id"),
        "draft_vocab_size": case.sizes.vocab,
        "num_target_layers": case.setting("num_target_layers"),
        "vocab_size": case.sizes.vocab, "hidden_size": case.sizes.hidden,
    }  # fmt: skip
    for key in ("conv_kernel_size", "conv_group_size", "selector_rank", "selector_top_k"):
        if key in inner:
            config[key] = inner[key]
    for key in ("markov_rank", "markov_head_type", "enable_confidence_head"):
        if key in layer:
            config[key] = layer.pop(key)
    for key in ("dflash_config", "num_target_layers", "target_layer_ids", "mask_token_id", "block_size"):
        layer.pop(key, None)
    layer.pop("architectures", None)
    config["transformer_layer_config"] = layer
    if case.chance(0.4):
        config["sliding_window_non_causal"] = case.pick(True, False)
    if case.chance(0.1):
        config.pop(case.pick("aux_hidden_state_layer_ids", "mask_token_id", "draft_vocab_size"))
    if case.chance(0.06):
        config["speculators_model_type"] = case.pick("xpress", "mtp")
    case.config.clear()
    case.config.update(config)
    if case.chance(0.5):
        _own_head(case)
    return case


def eagle_keys(rng: random.Random) -> Case:
    """A draft with the keys of EAGLE-3 beside those of DFlash."""
    case = families.FAMILIES[rng.choice(("dflash", "dflash2", "mimo"))](rng)
    ids = case.setting("target_layer_ids")
    if case.chance(0.6):
        case.config["eagle_aux_hidden_state_layer_ids"] = [each + 1 for each in ids]
        if case.chance(0.5):
            case.dflash.pop("target_layer_ids", None)
    if case.chance(0.3):
        case.config["target_hidden_size"] = width = case.pick(64, 96, 160)
        case.dense({"fc.weight": [case.sizes.hidden, case.sizes.taps * width]})
    if case.chance(0.3):
        case.dflash.update(use_swa=True)
        if case.chance(0.7):
            case.dflash["swa_window_size"] = 64
    if case.chance(0.3):
        case.config["add_swa_attention_sink_bias"] = case.pick(True, False)
    if case.chance(0.2):
        case.dflash["use_aux_hidden_state"] = case.pick(True, False)
    if case.chance(0.2):
        case.dflash["causal"] = case.pick(True, False)
    if case.chance(0.2):
        case.rename(r"layers\.0\.", "midlayer.")
    return case


def beam(rng: random.Random) -> Case:
    """A Beam draft, whose layers are all sliding and see both ways."""
    case = families.dflash2(rng)
    case.config["architectures"] = ["DFlash2BeamDraftModel"]
    case.dflash["final_logit_softcapping"] = case.pick(30.0, 15, 30.0, None)
    if case.chance(0.85):
        layers = case.sizes.layers
        case.config |= {"layer_types": ["sliding_attention"] * layers, "is_causal": False}
        case.config |= {"sliding_window": 128, "use_sliding_window": True}
    return case


def xpress(rng: random.Random) -> Case:
    """An XPress draft: a refiner of torch's own layers over DFlash's layers."""
    case = families.dflash(rng)
    s, rank, middle, block = case.sizes, case.pick(16, 32), case.pick(32, 64), case.pick(4, 8)
    case.config["architectures"] = [case.pick("Qwen3XPressModel", "DFlashQwen3XPressModel")]
    case.config |= {"xpress_rank": rank, "xpress_mlp_hidden": middle, "xpress_block_size": block}
    case.config["xpress_compile_head"] = False
    at = "xpress_head."
    shapes = {
        "w1.weight": [s.vocab, rank], "down_h.weight": [rank, s.hidden], "down_g.weight": [rank, s.hidden],
        "in_proj.weight": [rank, 3 * rank], "mix.L": [rank, block, block], "w2.weight": [s.vocab, rank],
        "mlp.gate_proj.weight": [middle, rank], "mlp.up_proj.weight": [middle, rank],
        "mlp.down_proj.weight": [rank, middle],
    }  # fmt: skip
    case.dense({at + name: shape for name, shape in shapes.items()})
    return case


def gemma4(rng: random.Random) -> Case:
    """A Gemma 4 DSpark draft: heads by the kind of a layer, four norms, and keys that are values too."""
    case = families.dspark(rng)
    s, config = case.sizes, case.config
    kinds = ("full_attention", "full_attention", "sliding_attention")
    types = [case.pick(*kinds) if case.chance(0.3) else "full_attention" for _ in range(s.layers)]
    wide, keys = case.pick(s.head_dim, s.head_dim, 64), case.pick(s.kv_heads, s.kv_heads, 1)
    shared = case.chance(0.85)
    config["target_layer_ids"] = case.setting("target_layer_ids")
    config |= {
        "architectures": ["Gemma4DSparkModel"], "model_type": "gemma4_text", "layer_types": types,
        "global_head_dim": wide, "num_global_key_value_heads": keys, "attention_k_eq_v": shared,
        "hidden_activation": case.pick("gelu_pytorch_tanh", "gelu_pytorch_tanh", "silu", "relu"),
    }  # fmt: skip
    for key in ("rope_theta", "rope_scaling", "rope_parameters", "hidden_act", "sliding_window"):
        config.pop(key, None)
    if case.chance(0.3):
        config["rope_parameters"] = case.pick(
            {"rope_type": "default", "rope_theta": 10000.0},
            {"full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.5, "rope_theta": 1e6},
             "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}, "rope_theta": 1e6},
        )  # fmt: skip
    if case.chance(0.1):
        config.pop(
            case.pick("global_head_dim", "num_global_key_value_heads", "layer_types", "markov_rank"), 0
        )
    for name in [name for name in case.tensors if ".self_attn." in name or "layernorm" in name]:
        del case.tensors[name]
    types = config.get("layer_types", types)
    for layer, kind in enumerate(types):
        last = layer == s.layers - 1
        full = kind == "full_attention" or last
        width, heads = (wide, keys if shared else s.kv_heads) if full else (s.head_dim, s.kv_heads)
        at, own = f"layers.{layer}.", {"q_proj": s.heads, "k_proj": heads, "v_proj": heads}
        if full and shared and case.chance(0.9):
            del own["v_proj"]
        case.dense({f"{at}self_attn.{name}.weight": [n * width, s.hidden] for name, n in own.items()})
        case.dense({f"{at}self_attn.o_proj.weight": [s.hidden, s.heads * width]})
        case.dense({f"{at}self_attn.{name}_norm.weight": [width] for name in "qk"})
        norms = ("input", "post_attention", "pre_feedforward", "post_feedforward")
        case.dense({f"{at}{norm}_layernorm.weight": [s.hidden] for norm in norms})
        if case.chance(0.9):
            case.dense({f"{at}layer_scalar": [1]})
    if case.chance(0.7):
        tables = ("embed_tokens.weight", "lm_head.weight")
        case.dense({name: [s.vocab, s.hidden] for name in tables})
    return case


def as_asked(case: Case) -> None:
    """The ignore list written anew: what is stored dense, under the names that vLLM asks for it by."""
    depth = targets.depth(case)

    def name(module: str) -> str:
        whole = re.sub(
            r"^(?:model\.)?layers\.([0-9]+)", lambda m: f"layers.{depth + int(m[1])}", fused(module)
        )
        return whole if whole == "lm_head" else f"model.{whole}"

    dense = [m for m in linears(case) if case.tensors[f"{m}.weight"][0] in ("BF16", "F16", "F32")]
    spell = case.pick(name, name, lambda m: f"re:.*{last(fused(m))}$", lambda m: f"*{last(fused(m))}")
    for place, key in lists_of(case):
        place[key] = sorted({spell(module) for module in dense})


def any_family(rng: random.Random) -> Case:
    """A draft of any of the families that both engines read."""
    return families.FAMILIES[rng.choice(sorted(families.FAMILIES))](rng)


def served(rng: random.Random) -> Case:
    """A draft of a family that vLLM has a class for."""
    return families.FAMILIES[rng.choice(("dflash", "dflash2", "bias", "lilicorr", "muse", "dspark"))](rng)


FAMILIES: Final[Mapping[str, Callable[[random.Random], Case]]] = {
    "beam": beam,
    "any": any_family,
    "any2": any_family,
    "eagle": eagle_keys,
    "experts": experts,
    "gemma4": gemma4,
    "laguna": laguna,
    "own": own_head,
    "own2": own_head,
    "speculators": speculators,
    "xpress": xpress,
}

SERVED: Final = {name: make for name, make in FAMILIES.items() if make is not any_family} | {"served": served}
"""Those that vLLM builds where nothing is wrong with them."""

FITTING: Final[Mapping[str, float]] = {
    "dense": 5, "ct-int": 2, "ct-asym": 1, "ct-int8": 2, "ct-fp8": 2, "ct-fp8w": 1, "ct-nvfp4": 2,
    "ct-kinds": 1, "ct-layers": 1, "ct-names": 1, "ct-mixed": 1, "fp8": 2, "mo-fp8": 2, "mo-fp4": 2,
    "mo-mixed": 1, "gptq": 1, "awq": 1, "auto-round": 1, "from-file": 0.5,
}  # fmt: skip
"""Methods that vLLM has -> how often."""
