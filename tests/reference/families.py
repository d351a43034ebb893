"""Small drafts of every family, as configs: what the recorded engine ran and what the reference is run on."""

from typing import Any, Final

Config = dict[str, Any]

SEED: Final = 1
BLOCKS: Final = 3
CONTEXT: Final = 20
"""So requests have contexts of 6, 13 and 20 tokens, two of them past the window."""

WINDOW: Final = 8
SLIDING: Final = {"sliding_window": WINDOW, "use_sliding_window": True}
CONVOLUTION: Final = {"conv_kernel_size": 3, "conv_group_size": 16}


def draft(architecture: str, dflash_config: Config | None = None, **more: Any) -> Config:
    """A draft's config.json: its class, keys of `dflash_config`, and keys beside it."""
    return {
        "architectures": [architecture],
        "model_type": "qwen3",
        "attention_bias": False,
        "head_dim": 32,
        "hidden_act": "silu",
        "hidden_size": 64,
        "intermediate_size": 96,
        "max_position_embeddings": 512,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "num_key_value_heads": 2,
        "num_target_layers": 8,
        "rms_norm_eps": 1e-5,
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
        "vocab_size": 96,
        "dtype": "bfloat16",
        "dflash_config": {
            "block_size": 6,
            "mask_token_id": 90,
            "target_layer_ids": [1, 4],
            **(dflash_config or {}),
        },
        **more,
    }


def sliding(*kinds: str, **more: Any) -> Config:
    return {**SLIDING, "layer_types": [f"{kind}_attention" for kind in kinds], **more}


def domino(**more: Any) -> Config:
    return {
        "projector_type": "domino",
        "gru_hidden_dim": 24,
        "emb_dim": 16,
        "pure_draft_prefix_len": 1,
        **more,
    }


def lilicorr(hidden_size: int) -> Config:
    return {
        "lilicorr_candidate_topk": 4,
        "lilicorr_hidden_size": hidden_size,
        "lilicorr_num_layers": 2,
        "lilicorr_num_heads": 2,
        "lilicorr_mlp_ratio": 2.0,
        "lilicorr_factor_dim": 16,
        "lilicorr_vector_eps": 1e-6,
        "lilicorr_logit_scale": 3.0,
    }


def markov(kind: str) -> Config:
    return {"markov_rank": 12, "markov_head_type": kind}


NEMOTRON: Final = {
    "has_embed_tokens": True,
    "has_lm_head": False,
    "eagle_aux_hidden_state_layer_ids": [2, 5],
    "quantization_config": {"quant_method": "modelopt", "quant_algo": "W4A16_NVFP4", "group_size": 16},
}
YARN: Final = {
    "rope_theta": 10000.0,
    "rope_type": "yarn",
    "factor": 4.0,
    "original_max_position_embeddings": 128,
}
LLAMA3: Final = {
    "rope_theta": 10000.0,
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 128,
}
SELECTOR: Final = {"selector_rank": 8, "selector_top_k": 4}

FAMILIES: Final[dict[str, Config]] = {
    "dflash": draft("DFlashDraftModel"),
    "dflash-bias": draft("DFlashDraftModel", attention_bias=True, **sliding("full", "sliding")),
    "dflash-window": draft("DFlashDraftModel", **sliding("sliding", "sliding", is_causal=False)),
    "dflash-causal": draft("DFlashDraftModel", **sliding("full", "sliding", is_causal=True)),
    "dflash-narrow": draft(
        "DFlashDraftModel", **{**sliding("sliding", "sliding", is_causal=False), "sliding_window": 3}
    ),
    "dflash-window-of-one": draft(
        "DFlashDraftModel", **{**sliding("sliding", "sliding"), "sliding_window": 1}
    ),
    "dflash-gemma": draft("DFlashDraftModel", use_gemma_norm=True),
    "dflash-swigluoai": draft("DFlashDraftModel", hidden_act="swigluoai", swiglu_alpha=1.7, swiglu_limit=0.5),
    "dflash-sinks": draft("DFlashDraftModel", {"attention_sink_bias": True, "attention_value_scale": 0.7}),
    "dflash-partial-rope": draft("DFlashDraftModel", partial_rotary_factor=0.5, rope_is_neox_style=False),
    "dflash-yarn": draft("DFlashDraftModel", rope_parameters=YARN),
    "dflash-llama3": draft("DFlashDraftModel", rope_parameters=LLAMA3),
    "dflash2": draft("DFlash2DraftModel", {**SELECTOR, **CONVOLUTION}, **sliding("full", "sliding")),
    "dflash2-capped": draft(
        "DFlash2DraftModel", {**SELECTOR, "output_multiplier": 2.5, "final_logit_softcapping": 3.0}
    ),
    "laguna-per-head": draft("DFlashLagunaForCausalLM", gating="per-head"),
    "laguna-per-element": draft(
        "DFlashLagunaForCausalLM", gating="per-element", use_gemma_norm=True, **sliding("full", "sliding")
    ),
    "dspark-vanilla": draft("Qwen3DSparkModel", **markov("vanilla")),
    "dspark-gated": draft("Qwen3DSparkModel", CONVOLUTION, **markov("gated")),
    "dspark-rnn": draft("Qwen3DSparkModel", CONVOLUTION, sample_from_anchor=False, **markov("rnn")),
    "domino": draft("DFlashDraftModel", domino(shift_label=True)),
    "domino-unshifted": draft("DFlashDraftModel", domino(shift_label=False)),
    "lilicorr": draft("LiLiCorrDraftModel", {**lilicorr(32), **CONVOLUTION}),
    "lilicorr-as-wide": draft("LiLiCorrDraftModel", {**lilicorr(0), **CONVOLUTION}),
    "nemotron": draft("DFlashDraftModel", {"sample_from_anchor": False}, **NEMOTRON),
}

POOL: Final = 8
"""A pool that leaves most tokens of a Domino draft uncorrected; the server's default is larger than a toy."""

HEAD_SIZE: Final = 32
ROPE_POSITIONS: Final = (0, 1, 7, 63, 200, 500)
ROPES: Final[dict[str, Config]] = {
    "plain": {},
    "default": {"rope_type": "default"},
    "wide-base": {"rope_type": "default", "rope_theta": 1e7},
    "rope-dim": {"rope_type": "default", "rope_dim": 16, "mrope_section": [1, 2, 3]},
    "linear": {"rope_type": "linear", "factor": 4.0},
    "dynamic": {"rope_type": "dynamic", "factor": 4.0},
    "dynamic-alpha": {"rope_type": "dynamic", "alpha": 100.0},
    "llama3": LLAMA3,
    "yarn": YARN,
    "yarn-scaled": {
        "rope_type": "yarn",
        "factor": 8.0,
        "original_max_position_embeddings": 128,
        "mscale": 0.8,
        "mscale_all_dim": 0.3,
        "attn_factor": 1.1,
        "beta_fast": 16,
        "beta_slow": 2,
        "truncate": False,
        "extrapolation_factor": 0.9,
    },
    "yarn-sections": {
        "rope_type": "yarn",
        "factor": 4.0,
        "original_max_position_embeddings": 128,
        "mrope_section": [4, 6, 6],
    },
    "deepseek-yarn": {
        "rope_type": "deepseek_yarn",
        "factor": 4.0,
        "original_max_position_embeddings": 128,
        "mscale": 1.0,
        "mscale_all_dim": 0.5,
    },
    "sections": {"rope_type": "default", "mrope_section": [4, 6, 6], "mrope_interleaved": True},
    "proportional": {"rope_type": "proportional", "rope_theta": 10000.0, "partial_rotary_factor": 0.5},
    "longrope": {
        "rope_type": "longrope",
        "short_factor": [1.0 + 0.1 * i for i in range(HEAD_SIZE // 2)],
        "long_factor": [1.0 + 0.5 * i for i in range(HEAD_SIZE // 2)],
        "original_max_position_embeddings": 256,
    },
}
"""The rope parameters of a config, as the engine is asked for them with heads of `HEAD_SIZE`."""
