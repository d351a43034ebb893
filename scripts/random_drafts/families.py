"""The families of drafts: configs with random sizes, and the tensors that belong to them."""

import random
from collections.abc import Callable, Mapping
from typing import Final

from random_drafts.case import Case, Json, Sizes, fuse


def some_sizes(rng: random.Random) -> Sizes:
    """Half of them are multiples of 128, as most published drafts have."""
    heads = rng.choice([2, 4, 4, 6, 8])
    kv_heads = rng.choice(
        [count for count in (1, 2, 2, 3, 4, 8) if count <= heads and (heads % count == 0 or count == 3)]
    )
    if rng.random() < 0.5:
        hidden, intermediate = rng.choice([128, 256, 384, 512]), rng.choice([128, 256, 384, 640])
        head_dim = rng.choice([64, 128])
    else:
        hidden = rng.choice([64, 96, 128, 160, 192, 208, 256, 320, 448])
        intermediate = rng.choice([64, 100, 160, 192, 200, 256, 344, 416])
        head_dim = rng.choice([16, 32, 40, 64, 80, 96])
    return Sizes(
        hidden=hidden,
        intermediate=intermediate,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        layers=rng.choice([1, 1, 2, 2, 3, 4]),
        vocab=rng.choice([64, 100, 128, 256, 250, 515, 1000]),
        taps=rng.choice([1, 2, 2, 3, 5]),
    )


def backbone(rng: random.Random, architecture: str) -> Case:
    """A dense draft of the base class: layers, norms and the projection of the target's features."""
    s = some_sizes(rng)
    target_layers = rng.choice([8, 24, 36])
    config: Json = {
        "architectures": [architecture],
        "model_type": "qwen3",
        "hidden_size": s.hidden,
        "intermediate_size": s.intermediate,
        "num_hidden_layers": s.layers,
        "num_attention_heads": s.heads,
        "num_key_value_heads": s.kv_heads,
        "head_dim": s.head_dim,
        "hidden_act": "silu",
        "max_position_embeddings": 4096,
        "num_target_layers": target_layers,
        "rms_norm_eps": 1e-06,
        "tie_word_embeddings": False,
        "attention_bias": False,
        "vocab_size": s.vocab,
        "dtype": "bfloat16",
        "dflash_config": {
            "block_size": rng.choice([4, 8, 16]),
            "mask_token_id": s.vocab - 6,
            "target_layer_ids": sorted(rng.sample(range(target_layers), s.taps)),
        },
    }
    case = Case(rng, s, config, {})
    _attention_types(case)
    _rope(case)
    _spellings(case)
    case.dense({"norm.weight": [s.hidden], "hidden_norm.weight": [s.hidden]})
    case.dense({"fc.weight": [s.hidden, s.taps * s.hidden]})
    for layer in range(s.layers):
        _layer(case, f"layers.{layer}.")
    return case


def _layer(case: Case, at: str) -> None:
    s = case.sizes
    q, kv = s.heads * s.head_dim, s.kv_heads * s.head_dim
    case.dense(
        {
            f"{at}input_layernorm.weight": [s.hidden],
            f"{at}self_attn.q_proj.weight": [q, s.hidden],
            f"{at}self_attn.k_proj.weight": [kv, s.hidden],
            f"{at}self_attn.v_proj.weight": [kv, s.hidden],
            f"{at}self_attn.o_proj.weight": [s.hidden, q],
            f"{at}self_attn.q_norm.weight": [s.head_dim],
            f"{at}self_attn.k_norm.weight": [s.head_dim],
            f"{at}post_attention_layernorm.weight": [s.hidden],
            f"{at}mlp.gate_proj.weight": [s.intermediate, s.hidden],
            f"{at}mlp.up_proj.weight": [s.intermediate, s.hidden],
            f"{at}mlp.down_proj.weight": [s.hidden, s.intermediate],
        }
    )


def _attention_types(case: Case) -> None:
    layers = case.sizes.layers
    types = case.pick(
        None,
        ["sliding_attention"] * layers,
        ["sliding_attention"] * (layers - 1) + ["full_attention"],
        ["full_attention"] * layers,
    )
    if types is not None:
        case.config |= {"layer_types": types, "sliding_window": 128, "use_sliding_window": True}
    if case.chance(0.4):
        case.config["is_causal"] = case.pick(True, False, None)


def _rope(case: Case) -> None:
    plain = {"rope_theta": 1e7, "rope_type": "default"}
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 1024}
    llama3 = {
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 1024,
    }  # fmt: skip
    case.config |= case.pick(
        *[{"rope_parameters": plain}] * 4,
        {"rope_theta": 1e6},
        {"rope_theta": 1e6, "rope_scaling": None},
        {"rope_parameters": plain | {"rope_dim": 16, "mrope_section": [8, 4, 4]}},
        {"rope_parameters": plain | {"partial_rotary_factor": 0.5}, "partial_rotary_factor": 0.5},
        {"rope_parameters": yarn | {"rope_theta": 1e6}},
        {"rope_theta": 1e6, "rope_scaling": llama3},
        {"rope_theta": 1e6, "rope_scaling": {"type": "linear", "factor": 2.0}},
        {"rope_theta": 1e6, "rope_scaling": {"rope_type": "dynamic", "factor": 2.0}},
        {"rope_parameters": plain, "rope_is_neox_style": False},
        {},
    )


def _spellings(case: Case) -> None:
    """Places where a config may say the same in another way."""
    inner = case.dflash
    for key in ("block_size", "mask_token_id", "target_layer_ids"):
        if case.chance(0.15):
            case.config[key] = inner.pop(key)
    if case.chance(0.1):
        inner["num_target_layers"] = case.config.pop("num_target_layers")
    if case.chance(0.05):
        del case.config["head_dim"]
    if case.chance(0.05):
        case.config |= case.pick(
            {"dtype": "float32"},
            {"torch_dtype": "float16"},
            {"architectures": [*case.config["architectures"], "X"]},
        )
    if case.chance(0.1):
        inner["mask_token"] = "<|MASK|>"
    if case.chance(0.05):
        inner |= {
            "output_multiplier": case.pick(0.5, "2", 1),
            "final_logit_softcapping": case.pick(30.0, None, 0),
        }


def _grouped_convolutions(case: Case) -> None:
    hidden = case.sizes.hidden
    taps, group = case.pick(1, 2, 2, 3), case.pick(*(g for g in (8, 16, 32) if hidden % g == 0))
    case.dflash.update(conv_kernel_size=taps, conv_group_size=group)
    for layer in range(case.sizes.layers):
        for name in ("attention_conv", "mlp_conv"):
            at = f"layers.{layer}.{name}."
            case.dense({f"{at}base_kernel": [2, taps, hidden]})
            case.dense({f"{at}kernel_projection.weight": [2 * taps * (hidden // group), hidden]})


def _biases(case: Case) -> None:
    case.config["attention_bias"] = True
    for name in [name for name in case.tensors if ".self_attn." in name and name.endswith("_proj.weight")]:
        case.tensors[name.removesuffix("weight") + "bias"] = ("BF16", case.tensors[name][1][:1])


def dflash(rng: random.Random) -> Case:
    case = backbone(rng, "DFlashDraftModel")
    if case.chance(0.2):
        _grouped_convolutions(case)
    return case


def model_types(rng: random.Random) -> Case:
    """A draft under the model type of another family, whose config class fills other keys."""
    case = backbone(rng, "DFlashDraftModel")
    case.config["model_type"] = case.pick(
        "qwen2", "llama", "mistral", "minimax_m2", "gpt_oss", "qwen3_moe", "gemma3_text", "phi3", None
    )
    if case.config["model_type"] is None:
        del case.config["model_type"]
    return case


def bias(rng: random.Random) -> Case:
    """As the drafts for gpt-oss: biases in the attention."""
    case = backbone(rng, rng.choice(("DFlashDraftModel", "DFlash2DraftModel")))
    _biases(case)
    if case.config["architectures"] == ["DFlash2DraftModel"]:
        _selector(case)
    return case


def swiglu(rng: random.Random) -> Case:
    case = backbone(rng, "DFlashDraftModel")
    case.config |= {"hidden_act": "swigluoai", "swiglu_alpha": 1.702, "swiglu_limit": case.pick(7.0, "7", 7)}
    return case


def gemma(rng: random.Random) -> Case:
    case = backbone(rng, rng.choice(("DFlashDraftModel", "DFlashLagunaForCausalLM")))
    case.config["use_gemma_norm"] = True
    if case.config["architectures"] == ["DFlashLagunaForCausalLM"]:
        _laguna(case)
    return case


def mimo(rng: random.Random) -> Case:
    """Attention sinks, a scale of the values, and names below `model.`."""
    case = backbone(rng, "DFlashDraftModel")
    case.dflash.update(attention_sink_bias=True, attention_value_scale=case.pick(0.7, 1, None))
    for layer in range(case.sizes.layers):
        case.tensors[f"layers.{layer}.self_attn.attention_sink_bias"] = (
            case.pick("BF16", "F32"),
            [case.sizes.heads],
        )
    if case.chance(0.7):
        case.rename("", "model.")
    return case


def muse(rng: random.Random) -> Case:
    case = backbone(rng, "MuseGlimmerAssistantModel")
    if case.chance(0.5):
        case.config["model_type"] = "muse_glimmer_assistant"
    if case.chance(0.8):
        case.rename(r"fc\.", "encoder.fc.")
        case.rename(r"hidden_norm\.", "encoder.output_norm_enc.")
    return case


def dflash2(rng: random.Random) -> Case:
    names = ("DFlash2DraftModel", "DFlash2DraftModel", "DFlash2BeamDraftModel", "MiniMaxDFlash2DraftModel")
    case = backbone(rng, rng.choice(names))
    if case.chance(0.8):
        _grouped_convolutions(case)
    _selector(case)
    return case


def _selector(case: Case) -> None:
    rank = case.pick(8, 16, 32)
    case.dflash.update(selector_rank=rank, selector_top_k=4)
    at = "candidate_selector."
    case.dense({f"{at}hidden_projection.weight": [rank, case.sizes.hidden]})
    for name in ("predecessor_codebook", "successor_codebook"):
        case.dense({at + name: [case.sizes.vocab, rank]})


def domino(rng: random.Random) -> Case:
    case = backbone(rng, "DFlashDraftModel")
    s, gru, emb = case.sizes, case.pick(16, 48, 64), case.pick(16, 32)
    case.dflash.update(projector_type="domino", gru_hidden_dim=gru, emb_dim=emb)
    case.dflash.update(shift_label=case.pick(True, False), pure_draft_prefix_len=1)
    case.dense({"prefix_gru.weight_ih_l0": [3 * gru, s.hidden], "prefix_gru.weight_hh_l0": [3 * gru, gru]})
    case.dense({"embed_proj.0.weight": [emb, s.hidden + gru], "embed_proj.2.weight": [s.vocab, emb]})
    return case


def laguna(rng: random.Random) -> Case:
    case = backbone(rng, "DFlashLagunaForCausalLM")
    if case.chance(0.3):
        case.config["model_type"] = "laguna"
    if case.chance(0.1):
        _biases(case)
    _laguna(case)
    if case.chance(0.3):
        fuse(case, "qkv_proj", ("q_proj", "k_proj", "v_proj"))
    return case


def _laguna(case: Case) -> None:
    s = case.sizes
    for tap in range(s.taps):
        case.dense({f"aux_hidden_norms.{tap}.weight": [s.hidden]})
    gating = case.pick("per-head", "per-element", "disabled", True, False, 1, 0, None, "absent", "other")
    if gating != "absent":
        case.config["gating"] = gating
    outputs = s.heads * s.head_dim if gating == "per-element" else s.heads
    if gating in ("per-head", "per-element", "absent", True):
        for layer in range(s.layers):
            case.dense({f"layers.{layer}.self_attn.g_proj.weight": [outputs, s.hidden]})


def lilicorr(rng: random.Random) -> Case:
    case = backbone(rng, "LiLiCorrDraftModel")
    if case.chance(0.6):
        _grouped_convolutions(case)
    draft, own = case.sizes.hidden, case.pick(0, case.sizes.hidden, 64, 96)
    inner = case.dflash
    head = {
        "candidate_topk": case.pick(1, 2, 4, 8, 16), "hidden_size": own, "num_layers": case.pick(1, 2),
        "num_heads": case.pick(1, 2, 4), "mlp_ratio": case.pick(1, 2.0, 1.5), "factor_dim": case.pick(8, 16),
        "vector_eps": 1e-6, "logit_scale": 1.0,
    }  # fmt: skip
    inner |= {f"lilicorr_{key}": value for key, value in head.items()}
    hidden, block = own or draft, case.setting("block_size")
    middle, topk, heads, factor = (
        head[k] for k in ("mlp_ratio", "candidate_topk", "num_heads", "factor_dim")
    )
    linears = {
        "pass_hidden_proj": (hidden, draft), "context_proj": (hidden, draft),
        "anchor_out_head": (factor, hidden), "feature_mlp.up_proj": (hidden, 5),
        "feature_mlp.down_proj": (hidden, hidden), "factor_input_proj": (hidden, 3 * hidden),
        "out_head": (factor, hidden), "in_head": (factor, hidden),
    }  # fmt: skip
    if hidden != draft:
        linears["token_proj"] = (hidden, draft)
    at = "lilicorr."
    case.dense({f"{at}feature_norm.weight": [5], f"{at}feature_norm.bias": [5]})
    case.dense({f"{at}output_norm.weight": [hidden], f"{at}anchor_norm.weight": [hidden]})
    case.dense(
        {f"{at}slot_embedding": [1, 1, block - 1, 1, hidden], f"{at}rank_embedding": [1, 1, 1, topk, hidden]}
    )
    case.dense({f"{at}relative_slot_bias": [heads, 2 * block - 1], f"{at}same_slot_bias": [heads]})
    for layer in range(head["num_layers"]):
        name = f"layers.{layer}."
        case.dense({f"{at}{name}attn_norm.weight": [hidden], f"{at}{name}mlp_norm.weight": [hidden]})
        case.dense({f"{at}{name}attn.in_proj_weight": [3 * hidden, hidden]})
        case.dense({f"{at}{name}attn.in_proj_bias": [3 * hidden]})
        linears[f"{name}attn.out_proj"] = (hidden, hidden)
        linears[f"{name}mlp.up_proj"] = (int(hidden * middle), hidden)
        linears[f"{name}mlp.down_proj"] = (hidden, int(hidden * middle))
    for name, shape in linears.items():
        case.dense({f"{at}{name}.weight": shape, f"{at}{name}.bias": shape[:1]})
    return case


def dspark(rng: random.Random) -> Case:
    names = ("Qwen3DSparkModel", "LingDSparkModel", "DSparkDraftModel")
    case = backbone(rng, rng.choice(names))
    _markov(case, case.pick("vanilla", "gated", "rnn", "Vanilla"))
    if case.chance(0.4):
        case.config["enable_confidence_head"] = True
        width = case.sizes.hidden + case.config["markov_rank"]
        case.dense(
            {"confidence_head.proj.weight": [1, width], "confidence_head.proj.bias": [1]},
            case.pick("F32", "BF16"),
        )
    if case.chance(0.3):
        case.dense({"embed_tokens.weight": [case.sizes.vocab, case.sizes.hidden]})
        case.dense({"lm_head.weight": [case.sizes.vocab, case.sizes.hidden]})
    return case


def _markov(case: Case, kind: str) -> None:
    s, rank = case.sizes, case.pick(16, 32, 64)
    case.config |= {"markov_rank": rank, "markov_head_type": kind}
    at = "markov_head."
    case.dense({f"{at}markov_w1.weight": [s.vocab, rank], f"{at}markov_w2.weight": [s.vocab, rank]})
    if kind == "gated":
        case.dense({f"{at}gate_proj.weight": [rank, s.hidden + rank], f"{at}gate_proj.bias": [rank]})
    if kind == "rnn":
        case.dense(
            {f"{at}joint_proj.weight": [3 * rank, 2 * rank + s.hidden], f"{at}joint_proj.bias": [3 * rank]}
        )


def nemotron(rng: random.Random) -> Case:
    """The Nemotron 3.5 layout, which is told by many keys together; some lack one of them."""
    case = backbone(rng, rng.choice(("DFlashDraftModel", "Qwen3DSparkModel")))
    s, inner = case.sizes, case.dflash
    ids = case.setting("target_layer_ids")
    inner["sample_from_anchor"] = False
    case.config |= {"has_embed_tokens": True, "has_lm_head": False}
    case.config["eagle_aux_hidden_state_layer_ids"] = [layer + 1 for layer in ids]
    case.dense({"embed_tokens.weight": [s.vocab, s.hidden]})
    if case.config["architectures"] == ["Qwen3DSparkModel"]:
        _markov(case, case.pick("vanilla", "vanilla", "vanilla", "gated"))
    if case.chance(0.1):
        case.config["attention_sink_bias"] = case.pick(False, None, 0)
    if case.chance(0.1) and "sliding_window" in case.config:
        inner["swa_window_size"] = case.config.pop("sliding_window")
    if case.chance(0.2):
        _near_miss(case, inner)
    return case


def _near_miss(case: Case, inner: Json) -> None:
    key, value = case.pick(
        ("has_embed_tokens", False), ("has_embed_tokens", "yes"), ("has_lm_head", True),
        ("eagle_aux_hidden_state_layer_ids", [3]), ("eagle_aux_hidden_state_layer_ids", None),
        ("sample_from_anchor", True), ("sample_from_anchor", None), ("sample_from_anchor", 0),
    )  # fmt: skip
    (inner if key == "sample_from_anchor" else case.config)[key] = value


FAMILIES: Final[Mapping[str, Callable[[random.Random], Case]]] = {
    "dflash": dflash,
    "types": model_types,
    "bias": bias,
    "swiglu": swiglu,
    "gemma": gemma,
    "mimo": mimo,
    "muse": muse,
    "dflash2": dflash2,
    "domino": domino,
    "laguna": laguna,
    "lilicorr": lilicorr,
    "dspark": dspark,
    "nemotron": nemotron,
}
