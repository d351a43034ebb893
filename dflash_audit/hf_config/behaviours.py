"""What each config class does with its fields: `__post_init__` and validators, as steps.

Source: transformers 5.19.0 `models/*/configuration_*.py`, a class each. The
fields themselves are recorded (`classes.py`); record them again after a change
of the keys here.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from dflash_audit.hf_config import rope
from dflash_audit.hf_config.config_object import ConfigObject
from dflash_audit.hf_config.layer_types import (
    FULL,
    HEADS_BY_LAYER,
    SLIDING,
    mlp_dense_then_sparse,
    schedule,
    uniform,
)
from dflash_audit.hf_config.replay import as_table
from dflash_audit.hf_config.steps import (
    Behaviour,
    default,
    every,
    from_extra,
    head_dim,
    head_dim_from_heads,
    heads_divide_width,
    known_rope_keys,
    kv_heads,
    latent_head_dims,
    mlp_only_layers,
    partial_rotary,
    set_aside,
    window_behind_switch,
)
from dflash_audit.refusal import NotModelled, Refused


def _past_max_window(config: ConfigObject, layer: int) -> bool:
    window = config.get("sliding_window")
    return window is not None and layer >= config.need("max_window_layers")


SLIDING_PAST_MAX_WINDOW: Final = schedule(_past_max_window, SLIDING, FULL)
ALTERNATING: Final = schedule(every(2), SLIDING, FULL)


def _mistral_layers(config: ConfigObject) -> None:
    if config.get("layer_types") is None:
        one = FULL if config.get("sliding_window") is None else SLIDING
        config.set("layer_types", [one] * config.need("num_hidden_layers"))


def _qwen2_moe(config: ConfigObject) -> None:
    mlp_only_layers(config)
    if not config.need("use_sliding_window"):
        config.set("sliding_window", 0)
    _QWEN2_MOE_LAYERS(config)


_QWEN2_MOE_LAYERS: Final = schedule(
    lambda config, layer: (
        bool((layer + 1) % 2)
        and layer < config.need("max_window_layers")
        and config.need("use_sliding_window")
    ),
    SLIDING,
    FULL,
)


def _linear_but_every_fourth(config: ConfigObject) -> None:
    if config.get("layer_types") is None:
        interval = config.extra.pop("full_attention_interval", 4)
        schedule(every(interval), "linear_attention", FULL)(config)


def _yarn_of_gpt_oss(config: ConfigObject) -> dict[str, Any]:
    return {
        "rope_type": "yarn",
        "factor": 32.0,
        "beta_fast": 32.0,
        "beta_slow": 1.0,
        "truncate": False,
        "original_max_position_embeddings": 4096,
    }


def _yarn_of_ministral3(config: ConfigObject) -> dict[str, Any]:
    return {
        "type": "yarn",
        "rope_theta": 1000000.0,
        "factor": 16.0,
        "original_max_position_embeddings": 16384,
        "max_position_embeddings": config.need("max_position_embeddings"),
        "beta_fast": 32.0,
        "beta_slow": 1.0,
        "mscale_all_dim": 1.0,
        "mscale": 1.0,
        "llama_4_scaling_beta": 0.1,
    }


def _llama3_of_apertus(config: ConfigObject) -> dict[str, Any]:
    return {
        "rope_type": "llama3",
        "rope_theta": 12000000.0,
        "factor": 8.0,
        "original_max_position_embeddings": 8192,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
    }


def _by_layer_type(
    full: Mapping[str, Any], sliding: Mapping[str, Any]
) -> Callable[[ConfigObject], dict[str, dict[str, Any]]]:
    return lambda config: {
        "full_attention": {"rope_type": "default", **full},
        "sliding_attention": {"rope_type": "default", **sliding},
    }


def _laguna_architecture(config: ConfigObject) -> None:
    if config.need("moe_apply_router_weight_on_input"):
        raise Refused("moe_apply_router_weight_on_input=true is not supported for Laguna")
    depth = config.need("num_hidden_layers")
    for name in ("num_attention_heads_per_layer", "layer_types", "mlp_layer_types"):
        if len(config.need(name)) != depth:
            raise Refused(f"{name} has {len(config.need(name))} entries for {depth} layers")


def _heads_in_every_layer(config: ConfigObject) -> list[Any]:
    return [config.need("num_attention_heads")] * config.need("num_hidden_layers")


_LAGUNA_FULL: Final = {"rope_theta": 500000.0, "partial_rotary_factor": 0.5}
_LAGUNA_SLIDING: Final = {"rope_theta": 10000.0, "partial_rotary_factor": 1.0}
_HEADS: Final = ("head_dim", "num_key_value_heads")
_BY_LAYER: Final = frozenset(_HEADS)
_GEMMA4_FULL: Final = {
    "rope_type": "proportional",
    "rope_theta": 1_000_000.0,
    "partial_rotary_factor": 0.25,
}
_GEMMA4_SLIDING: Final = {"rope_theta": 10_000.0}
_MIMO_FULL: Final = {"rope_theta": 5_000_000.0, "partial_rotary_factor": 0.334}
_MIMO_SLIDING: Final = {"rope_theta": 10_000.0, "partial_rotary_factor": 0.334}


def _gemma3_window(config: ConfigObject) -> None:
    if config.need("use_bidirectional_attention"):
        config.set("sliding_window", config.need("sliding_window") // 2 + 1)


def _gemma3_layers(config: ConfigObject) -> None:
    pattern = config.extra.get("sliding_window_pattern", 6)
    config.set("_sliding_window_pattern", pattern)
    schedule(every(pattern), SLIDING, FULL)(config)


def _gemma4_window(config: ConfigObject) -> None:
    if config.need("use_bidirectional_attention") == "all":
        config.set("is_causal", False)
        config.set("sliding_window", config.need("sliding_window") // 2 + 1)


def _gemma4_layers(config: ConfigObject) -> None:
    """Five sliding layers and a full one where nothing is said; the last is full whatever is said."""
    schedule(every(6), SLIDING, FULL)(config)
    types = config.need("layer_types")
    if types and types[-1] != FULL:
        types[-1] = FULL


def _gemma4_heads(config: ConfigObject) -> None:
    """The width and the number of key heads of each layer, which the object has in a config of its own.

    Full layers have others, unless `per_layer_config` says it of each, as a config does that the class wrote.
    """
    width = config.extra.pop("global_head_dim", 512)
    number = config.extra.pop("num_global_key_value_heads", None)
    own = {"head_dim": width}
    if number is not None and config.need("attention_k_eq_v"):
        own["num_key_value_heads"] = number
    types = config.need("layer_types")
    said = {str(layer): own for layer, kind in enumerate(types) if kind == FULL}
    given = config.extra.pop("per_layer_config", said)
    layers = given if isinstance(given, dict) else {"": given}
    if not all(isinstance(each, dict) and each.keys() <= _BY_LAYER for each in layers.values()):
        raise NotModelled(
            "per_layer_config: a config that differs from layer to layer in more than its heads"
        )
    if not {str(layer) for layer in layers} <= {str(layer) for layer in range(len(types))}:
        raise Refused(f"per_layer_config is of layers {', '.join(map(str, layers))}, of {len(types)}")
    of = {str(layer): each for layer, each in layers.items()}
    both = (config.need("head_dim"), config.need("num_key_value_heads"))
    config.extra[HEADS_BY_LAYER] = [
        tuple(_one_of(of.get(str(layer), {}), *each) for each in zip(_HEADS, both, strict=True))
        for layer in range(len(types))
    ]


def _one_of(own: Mapping[str, Any], key: str, whole: Any) -> Any:
    """A layer's value, that of the whole config where it is equal, whatever its type."""
    value = own.get(key, whole)
    return whole if value == whole else value


def _gemma_activation(config: ConfigObject) -> None:
    if config.get("hidden_act") == "gelu":
        config.set("hidden_act", "gelu_pytorch_tanh")


def _cohere2_layers(config: ConfigObject) -> None:
    if config.get("layer_types") is None:
        schedule(every(config.extra.pop("sliding_window_pattern", 4)), SLIDING, FULL)(config)


def _exaone_pattern(config: ConfigObject) -> None:
    if config.get("sliding_window") is None:
        config.set("sliding_window_pattern", 0)


_EXAONE_LAYERS: Final = schedule(
    lambda config, layer: (layer + 1) % config.need("sliding_window_pattern") != 0, SLIDING, FULL
)


def _dense_first(config: ConfigObject) -> list[str]:
    depth, dense = config.need("num_hidden_layers"), config.need("first_k_dense_replace")
    return ["dense" if layer < dense else "sparse" for layer in range(depth)]


def _dense_first_of_deepseek(config: ConfigObject) -> list[str]:
    depth = config.need("num_hidden_layers")
    dense = min(config.need("first_k_dense_replace"), depth)
    return ["dense"] * dense + ["sparse"] * (depth - dense)


def _dense_layer_then_sparse(config: ConfigObject) -> list[str]:
    depth = config.need("num_hidden_layers")
    return ["dense"] * (1 if depth > 0 else 0) + ["sparse"] * max(depth - 1, 0)


def _fourth_from_last(config: ConfigObject, layer: int) -> bool:
    return bool((config.need("num_hidden_layers") - 1 - layer) % 4 == 0)


def _indexers_of_glm(config: ConfigObject) -> list[str]:
    """Which layers compute their own top-k: by a pattern, or one in so many."""
    pattern = config.extra.get("index_topk_pattern")
    if isinstance(pattern, str):
        return [{"F": "full", "S": "shared"}[letter] for letter in pattern]
    if pattern is not None:
        return list(pattern)
    frequency = max(config.extra.get("index_topk_freq", 1), 1)
    offset = config.extra.get("index_skip_topk_offset", 2)
    depth = config.need("num_hidden_layers")
    return ["shared" if max(layer - offset + 1, 0) % frequency else "full" for layer in range(depth)]


def _query_head_dim(config: ConfigObject) -> None:
    config.set("qk_head_dim", config.need("qk_nope_head_dim") + config.need("qk_rope_head_dim"))


def _experts_by_other_name(config: ConfigObject) -> None:
    if (experts := config.extra.get("num_experts")) is not None:
        config.set("n_routed_experts", experts)


def _lfm2_layers(config: ConfigObject) -> None:
    if config.get("layer_types") is not None:
        return
    depth = config.need("num_hidden_layers")
    if config.get("full_attn_idxs") is None:
        config.set("full_attn_idxs", list(range(depth)))
    attention = config.need("full_attn_idxs")
    config.set("layer_types", [FULL if layer in attention else "conv" for layer in range(depth)])


def _no_rope_layers(config: ConfigObject) -> None:
    if config.get("no_rope_layers") is None:
        interval, depth = config.need("no_rope_layer_interval"), config.need("num_hidden_layers")
        config.set("no_rope_layers", [int((layer + 1) % interval != 0) for layer in range(depth)])


_SMOLLM3_LAYERS: Final = schedule(
    lambda config, layer: (
        not (
            not config.need("no_rope_layers")[layer]
            and config.need("use_sliding_window")
            and config.need("sliding_window") is not None
        )
    ),
    FULL,
    SLIDING,
)


def _moe_end_index(config: ConfigObject) -> None:
    if config.get("moe_layer_end_index") == -1:
        config.set("moe_layer_end_index", config.need("num_hidden_layers") - 1)


_DEEPSEEK_V4_RATIOS: Final = {
    0: "sliding_attention",
    4: "compressed_sparse_attention",
    128: "heavily_compressed_attention",
}
_DEEPSEEK_V4_LAYERS: Final = tuple(_DEEPSEEK_V4_RATIOS.values())
_DEEPSEEK_V4_MLPS: Final = ("hash_moe", "moe")


def _deepseek_v4_rates(config: ConfigObject) -> None:
    if config.get("compress_rates") is None:
        config.set("compress_rates", dict(config.need("default_compress_rates")))
    for key, layer_type in (
        ("compress_rate_csa", _DEEPSEEK_V4_LAYERS[1]),
        ("compress_rate_hca", _DEEPSEEK_V4_LAYERS[2]),
    ):
        if config.aside[key] is not None:
            config.need("compress_rates")[layer_type] = config.aside[key]


def _deepseek_v4_layers(config: ConfigObject) -> None:
    depth, ratios = config.need("num_hidden_layers"), config.aside["compress_ratios"]
    _, sparse, heavy = _DEEPSEEK_V4_LAYERS
    if config.get("layer_types") is None and ratios is not None:
        config.set("layer_types", [_DEEPSEEK_V4_RATIOS[ratio] for ratio in ratios])
    if config.get("layer_types") is None:
        rest = [sparse if layer % 2 else heavy for layer in range(max(depth - 2, 0))]
        config.set("layer_types", [heavy] * min(depth, 2) + rest)
    config.set("layer_types", list(config.need("layer_types")[:depth]))
    if config.get("mlp_layer_types") is None:
        hashed = config.aside["num_hash_layers"]
        hashed = config.need("default_num_hash_layers") if hashed is None else hashed
        config.set("mlp_layer_types", ["hash_moe"] * min(depth, hashed) + ["moe"] * max(0, depth - hashed))
    config.set("mlp_layer_types", list(config.need("mlp_layer_types")[:depth]))


def _deepseek_v4_rope(config: ConfigObject) -> None:
    if config.get("partial_rotary_factor") is None:
        width = config.aside["qk_rope_head_dim"]
        factor = config.need("default_partial_rotary_factor")
        config.set("partial_rotary_factor", factor if width is None else width / config.need("head_dim"))
    factor = config.need("partial_rotary_factor")
    config.set("qk_rope_head_dim", int(config.need("head_dim") * factor))
    given = config.get("rope_parameters") or {}
    if isinstance(given.get("main"), dict) and isinstance(given.get("compress"), dict):
        config.set("rope_parameters", {"main": given["main"], "compress": given["compress"]})
        return
    main = {"rope_type": "default", "rope_theta": config.need("rope_theta"), "partial_rotary_factor": factor}
    compress = {key: value for key, value in given.items() if key not in ("main", "compress")}
    compress |= {"rope_theta": config.need("compress_rope_theta"), "partial_rotary_factor": factor}
    if compress.setdefault("rope_type", "default") == "yarn":
        compress.setdefault("attention_factor", 1.0)
    config.set("rope_parameters", {"main": main, "compress": compress})


def _deepseek_v4_validate_rope(config: ConfigObject) -> None:
    parameters = config.get("rope_parameters", None) or {}
    for label in ("main", "compress"):
        if isinstance(parameters.get(label), dict):
            rope.validate_one(config, parameters[label])


def _deepseek_v4_validate_layers(config: ConfigObject) -> None:
    depth = config.need("num_hidden_layers")
    for name, allowed in (("layer_types", _DEEPSEEK_V4_LAYERS), ("mlp_layer_types", _DEEPSEEK_V4_MLPS)):
        layers = config.need(name)
        if len(layers) != depth or not all(layer in allowed for layer in layers):
            raise Refused(f"{name} must have {depth} entries of {allowed}, got {layers!r}")


def _linear_attention_of_kimi(config: ConfigObject) -> None:
    """Kimi Linear keeps its attention schedule in a table of its own, layers counted from one."""
    given = as_table(config.extra.get("linear_attn_config", {}), "linear_attn_config")
    for name, key in (
        ("linear_head_dim", "head_dim"),
        ("linear_num_heads", "num_heads"),
        ("linear_conv_kernel_dim", "short_conv_kernel_size"),
    ):
        config.set(name, given.get(key, config.need(name)))
    if config.get("layer_types") is not None:
        return
    if "full_attn_layers" not in given or "kda_layers" not in given:
        schedule(lambda config, layer: bool(layer and layer % 4 == 0), FULL, "linear_attention")(config)
        return
    layers: list[str | None] = [None] * config.need("num_hidden_layers")
    for key, layer_type in (("full_attn_layers", FULL), ("kda_layers", "linear_attention")):
        for layer in given[key]:
            layers[layer - 1] = layer_type
    config.set("layer_types", layers)


def _mlp_of_kimi(config: ConfigObject) -> list[str]:
    dense = config.extra.get("first_k_dense_replace", 1)
    return ["dense" if layer < dense else "sparse" for layer in range(config.need("num_hidden_layers"))]


def _sparse_attention_of_minimax_m3(config: ConfigObject) -> None:
    config.set("hidden_act", "silu")
    sparse = config.aside["sparse_attention_config"] or {}
    for name, key in (
        ("index_n_heads", "sparse_num_index_heads"),
        ("index_head_dim", "sparse_index_dim"),
        ("index_block_size", "sparse_block_size"),
        ("index_topk_blocks", "sparse_topk_blocks"),
        ("index_local_blocks", "sparse_local_block"),
    ):
        if key in sparse:
            config.set(name, sparse[key])
    if config.get("layer_types") is None and "sparse_attention_freq" in sparse:
        frequency = sparse["sparse_attention_freq"]
        config.set("layer_types", ["minimax_m3_sparse" if sparse_here else FULL for sparse_here in frequency])
    uniform(FULL)(config)
    mixtures = config.aside["moe_layer_freq"]
    if config.get("mlp_layer_types") is None:
        depth = config.need("num_hidden_layers")
        layers = (
            ["sparse"] * depth if mixtures is None else ["sparse" if here else "dense" for here in mixtures]
        )
        config.set("mlp_layer_types", layers)


def _rope_theta_by_layer(config: ConfigObject) -> None:
    """Muse Glimmer: every fourth layer, counted from the last, has no rotary embedding."""
    if config.get("layer_rope_theta") is None:
        depth, theta = config.need("num_hidden_layers"), config.need("rope_parameters")["rope_theta"]
        config.set(
            "layer_rope_theta", [0 if (depth - 1 - layer) % 4 == 0 else theta for layer in range(depth)]
        )


_KV: Final = (kv_heads,)
_KV_AND_HEAD: Final = (head_dim, kv_heads)
_QWEN3: Final = (window_behind_switch, kv_heads, SLIDING_PAST_MAX_WINDOW)
_DEEPSEEK_V32: Final = (
    latent_head_dims,
    default("mlp_layer_types", _dense_first_of_deepseek),
    uniform("indexed_attention"),
    _experts_by_other_name,
)

TRANSFORMERS_CLASSES: Final[Mapping[str, Behaviour]] = {
    "apertus": Behaviour((kv_heads, default("rope_parameters", _llama3_of_apertus))),
    "arcee": Behaviour(_KV_AND_HEAD, validate_architecture=heads_divide_width),
    "axk1": Behaviour((kv_heads, latent_head_dims)),
    "bitnet": Behaviour(_KV),
    "cohere": Behaviour(_KV),
    "cohere2": Behaviour((kv_heads, head_dim_from_heads, _cohere2_layers)),
    "deepseek_v2": Behaviour((latent_head_dims, kv_heads), validate_architecture=heads_divide_width),
    "deepseek_v3": Behaviour((kv_heads, latent_head_dims)),
    "deepseek_v32": Behaviour(_DEEPSEEK_V32),
    "deepseek_v4": Behaviour(
        before=(
            set_aside(
                "compress_ratios",
                "compress_rate_csa",
                "compress_rate_hca",
                "num_hash_layers",
                "qk_rope_head_dim",
            ),
        ),
        after=(_deepseek_v4_rates, _deepseek_v4_layers, _deepseek_v4_rope),
        validate_rope=_deepseek_v4_validate_rope,
        validate_layer_types=_deepseek_v4_validate_layers,
    ),
    "diffllama": Behaviour(_KV_AND_HEAD),
    "dots1": Behaviour((kv_heads, SLIDING_PAST_MAX_WINDOW)),
    "ernie4_5": Behaviour(_KV_AND_HEAD),
    "ernie4_5_moe": Behaviour((_moe_end_index,)),
    "exaone4": Behaviour((_exaone_pattern, _EXAONE_LAYERS)),
    "exaone_moe": Behaviour((default("mlp_layer_types", _dense_first), _exaone_pattern, _EXAONE_LAYERS)),
    "flex_olmo": Behaviour(_KV),
    "gemma": Behaviour((_gemma_activation,)),
    "gemma2": Behaviour((ALTERNATING,), validate_architecture=heads_divide_width),
    "gemma3_text": Behaviour(
        (_gemma3_window, _gemma3_layers),
        convert_rope=rope.convert_by_layer_type,
        validate_architecture=heads_divide_width,
    ),
    "gemma4_text": Behaviour(
        (
            _gemma4_window,
            _gemma4_layers,
            default("rope_parameters", _by_layer_type(_GEMMA4_FULL, _GEMMA4_SLIDING)),
            _gemma4_heads,
        ),
        convert_rope=rope.leave,
    ),
    "glm": Behaviour((partial_rotary(0.5), default("eos_token_id", lambda config: [151329, 151336, 151338]))),
    "glm4": Behaviour(
        (partial_rotary(0.5), default("eos_token_id", lambda config: [151329, 151336, 151338]))
    ),
    "glm4_moe": Behaviour((partial_rotary(0.5),)),
    "glm4_moe_lite": Behaviour((mlp_dense_then_sparse, _query_head_dim)),
    "glm_moe_dsa": Behaviour((default("indexer_types", _indexers_of_glm), *_DEEPSEEK_V32)),
    "gpt_oss": Behaviour((kv_heads, head_dim, ALTERNATING, default("rope_parameters", _yarn_of_gpt_oss))),
    "granite": Behaviour(_KV),
    "granitemoe": Behaviour(_KV),
    "granitemoeshared": Behaviour(_KV),
    "helium": Behaviour(),
    "hunyuan_v1_dense": Behaviour(_KV),
    "hunyuan_v1_moe": Behaviour(_KV),
    "hy_v3": Behaviour((default("mlp_layer_types", _dense_layer_then_sparse),)),
    "jais2": Behaviour(_KV_AND_HEAD, validate_architecture=heads_divide_width),
    "kimi_linear": Behaviour(
        (kv_heads, latent_head_dims),
        after=(_linear_attention_of_kimi, default("mlp_layer_types", _mlp_of_kimi)),
    ),
    "laguna": Behaviour(
        (
            uniform(FULL),
            mlp_dense_then_sparse,
            default("num_attention_heads_per_layer", _heads_in_every_layer),
            default("rope_parameters", _by_layer_type(_LAGUNA_FULL, _LAGUNA_SLIDING)),
            known_rope_keys(SLIDING, FULL),
        ),
        convert_rope=rope.leave,
        validate_architecture=_laguna_architecture,
    ),
    "lfm2": Behaviour(
        (
            _lfm2_layers,
            from_extra("tie_word_embeddings", "tie_embedding"),
            from_extra("intermediate_size", "block_ff_dim"),
        ),
        strict=False,
    ),
    "llama": Behaviour(_KV_AND_HEAD, validate_architecture=heads_divide_width),
    "mellum": Behaviour(
        (
            uniform(FULL),
            default("mlp_layer_types", lambda config: ["sparse"] * config.need("num_hidden_layers")),
            default("rope_parameters", _by_layer_type({"rope_theta": 500000.0}, {"rope_theta": 10000.0})),
            known_rope_keys(SLIDING, FULL),
        ),
        convert_rope=rope.leave,
    ),
    "mimo_v2_flash": Behaviour(
        (
            schedule(lambda config, layer: layer == 0 or not (layer + 1) % 6, FULL, SLIDING),
            mlp_dense_then_sparse,
            default("rope_parameters", _by_layer_type(_MIMO_FULL, _MIMO_SLIDING)),
            default("routed_scaling_factor", lambda config: 1.0),
        ),
        convert_rope=rope.leave,
    ),
    "minimax": Behaviour((kv_heads, schedule(every(2), FULL, "linear_attention"))),
    "minimax_m2": Behaviour(convert_rope=rope.convert_rotary_dim),
    "minimax_m3_vl_text": Behaviour(
        before=(set_aside("sparse_attention_config", "moe_layer_freq"),),
        after=(_sparse_attention_of_minimax_m3,),
    ),
    "ministral": Behaviour((kv_heads, _mistral_layers)),
    "ministral3": Behaviour((default("rope_parameters", _yarn_of_ministral3), head_dim, kv_heads)),
    "mistral": Behaviour(_KV_AND_HEAD),
    "mixtral": Behaviour(_KV),
    "muse_glimmer_assistant": Behaviour(
        (uniform(SLIDING), default("target_layer_ids", lambda config: [1, 13, 25, 37, 49]))
    ),
    "muse_glimmer_text": Behaviour(
        (schedule(_fourth_from_last, FULL, SLIDING),),
        after=(_rope_theta_by_layer,),
        validate_architecture=heads_divide_width,
    ),
    "nanochat": Behaviour(_KV),
    "nemotron": Behaviour((head_dim, partial_rotary(0.5))),
    "olmo": Behaviour(_KV),
    "olmo2": Behaviour(_KV),
    "olmoe": Behaviour(_KV),
    "persimmon": Behaviour((partial_rotary(0.5),)),
    "phi": Behaviour((kv_heads, partial_rotary(0.5))),
    "qwen2": Behaviour(_QWEN3),
    "qwen2_5_vl_text": Behaviour(_QWEN3, convert_rope=rope.convert_multimodal),
    "qwen2_moe": Behaviour((_qwen2_moe,)),
    "qwen2_vl_text": Behaviour(_QWEN3, convert_rope=rope.convert_multimodal),
    "qwen3": Behaviour(_QWEN3),
    "qwen3_5_moe_text": Behaviour((partial_rotary(0.25), _linear_but_every_fourth)),
    "qwen3_5_text": Behaviour((partial_rotary(0.25), _linear_but_every_fourth)),
    "qwen3_moe": Behaviour((window_behind_switch, mlp_only_layers)),
    "qwen3_next": Behaviour((partial_rotary(0.25), mlp_only_layers, _linear_but_every_fourth)),
    "qwen3_vl_text": Behaviour(_KV),
    "seed_oss": Behaviour(_KV_AND_HEAD),
    "smollm3": Behaviour((kv_heads, _no_rope_layers, _SMOLLM3_LAYERS)),
    "solar_open": Behaviour(),
    "stablelm": Behaviour((partial_rotary(0.25),)),
    "starcoder2": Behaviour(),
}
"""Model type -> what the class does that AutoConfig takes for it."""

OWN_CLASSES: Final = (
    "bailing_hybrid", "deepseek_v32", "deepseek_v4", "kimi_k2", "kimi_linear", "laguna", "mellum",
    "muse_glimmer_assistant", "qwen3_5_moe_text", "qwen3_5_text", "qwen3_next",
)  # fmt: skip
"""Model types that SGLang's own registry reads again, and that `own_classes.py` replays."""
