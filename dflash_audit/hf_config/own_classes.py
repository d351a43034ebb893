"""Config classes of SGLang's own registry, with which it reads a config a second time.

Source: SGLang 0.5.23 `srt/utils/hf_transformers/common.py` (`_CONFIG_REGISTRY`,
the DeepSeek aliases) and the file in `srt/configs/` that each function names.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from dflash_audit.hf_config.behaviours import TRANSFORMERS_CLASSES
from dflash_audit.hf_config.classes import ClassFacts, sglang_class, transformers_class
from dflash_audit.hf_config.config_object import ConfigObject
from dflash_audit.hf_config.making import BASE, complete, make
from dflash_audit.hf_config.replay import as_table, replayed
from dflash_audit.hf_config.steps import Behaviour
from dflash_audit.refusal import NotModelled, Refused

Arguments = dict[str, Any]


def _split(facts: ClassFacts, given: Mapping[str, Any]) -> tuple[Arguments, Arguments]:
    """(arguments of the written `__init__`, what goes through it)."""
    arguments = {name: given.get(name, default) for name, default in facts.parameters.items()}
    return arguments, {name: value for name, value in given.items() if name not in arguments}


def _pass_on(arguments: Arguments, names: tuple[str, ...]) -> Arguments:
    return {name: arguments.pop(name) for name in names}


def _assign(config: ConfigObject, arguments: Mapping[str, Any]) -> None:
    for name, value in arguments.items():
        config.set(name, value)


def normalize_gating(value: Any) -> Literal["per-head", "per-element", "disabled"]:
    """The output gate of Laguna's attention. Source: `laguna.py`."""
    if value in (True, "per-head"):
        return "per-head"
    if value == "per-element":
        return "per-element"
    if value in (False, None, "disabled"):
        return "disabled"
    raise Refused(f"gating must be a boolean, null, 'per-head', 'per-element' or 'disabled', got {value!r}")


def _laguna(given: Arguments) -> ConfigObject:
    """Source: `laguna.py`."""
    facts = sglang_class("laguna")
    arguments, rest = _split(facts, given)
    rest |= _pass_on(arguments, ("tie_word_embeddings", "bos_token_id", "eos_token_id", "pad_token_id"))
    config = make(facts, BASE, rest)
    with replayed("SGLang's Laguna config cannot use the config"):
        arguments["gating"] = normalize_gating(arguments["gating"])
        schedules = _laguna_schedules(arguments)
        rotary = _laguna_rope(arguments, schedules["layer_types"])
        heads = _laguna_heads(arguments, schedules)
        _assign(config, arguments | schedules | rotary | heads)
    return config


def _laguna_schedules(arguments: Arguments) -> Arguments:
    """Take the per-layer lists out of the arguments and fill in the missing ones."""
    depth, heads = arguments["num_hidden_layers"], arguments["num_attention_heads"]
    missing = {
        "layer_types": ["full_attention"] * depth,
        "mlp_layer_types": ["dense"] + ["sparse"] * (depth - 1),
        "num_attention_heads_per_layer": [heads] * depth,
    }
    schedules = {name: list(arguments.pop(name) or fill) for name, fill in missing.items()}
    if len(schedules["num_attention_heads_per_layer"]) != depth:
        raise Refused(f"num_attention_heads_per_layer must have one entry for each of the {depth} layers")
    return schedules


def _laguna_heads(arguments: Arguments, schedules: Arguments) -> Arguments:
    layers, mlps = schedules["layer_types"], schedules["mlp_layer_types"]
    full = layers.index("full_attention") if "full_attention" in layers else 0
    return {
        "num_attention_heads": schedules["num_attention_heads_per_layer"][full],
        "swa_num_key_value_heads": arguments["num_key_value_heads"],
        "swa_head_dim": arguments["head_dim"],
        "swa_v_head_dim": arguments["head_dim"],
        "n_routed_experts": arguments["num_experts"],
        "n_shared_experts": 1,
        "routed_scaling_factor": arguments["moe_routed_scaling_factor"],
        "norm_topk_prob": True,
        "first_k_dense_replace": mlps.index("sparse") if "sparse" in mlps else arguments["num_hidden_layers"],
    }


def _laguna_rope(arguments: Arguments, layers: list[Any]) -> Arguments:
    """Flat rotary attributes for full and for sliding attention, out of the nested parameters."""
    given = arguments["rope_parameters"] if isinstance(arguments["rope_parameters"], dict) else {}
    sliding = as_table(given.get("sliding_attention") or {}, "rope_parameters")
    full = given.get("full_attention") or ({} if "full_attention" in layers else sliding)
    full = as_table(full, "rope_parameters")
    theta = _first(full.get("rope_theta"), arguments["rope_theta"], 10000.0)
    factor = _first(full.get("partial_rotary_factor"), arguments["partial_rotary_factor"], 1.0)
    return {
        "rope_theta": theta,
        "partial_rotary_factor": factor,
        "full_rope_scaling": _first(_laguna_scaling(full), arguments.pop("rope_scaling")),
        "swa_rope_theta": _first(sliding.get("rope_theta"), theta),
        "swa_partial_rotary_factor": _first(sliding.get("partial_rotary_factor"), factor),
        "swa_rope_scaling": _laguna_scaling(sliding),
    }


_LAGUNA_SCALING: Final = (
    "factor", "original_max_position_embeddings", "beta_fast", "beta_slow", "extrapolation_factor",
    "truncate", "low_freq_factor", "high_freq_factor", "mscale", "mscale_all_dim", "short_factor",
    "long_factor", "short_mscale", "long_mscale",
)  # fmt: skip


def _laguna_scaling(parameters: Arguments) -> Arguments | None:
    """Rotary parameters as SGLang's `get_rope` takes them; None for plain rotation."""
    rope_type = parameters.get("rope_type") or parameters.get("type")
    if rope_type in (None, "default"):
        return None
    scaling = {"rope_type": rope_type} | {
        key: parameters[key] for key in _LAGUNA_SCALING if key in parameters
    }
    if "attention_factor" in parameters:
        scaling.pop("mscale", None)
        scaling.pop("mscale_all_dim", None)
        factor = float(parameters.get("factor", 1.0) or 1.0)
        default = 1.0 if factor <= 1 else 0.1 * math.log(factor) + 1.0
        scaling["attn_factor"] = parameters["attention_factor"] / default
    return scaling


def _first(*candidates: Any) -> Any:
    return next((candidate for candidate in candidates if candidate is not None), None)


def _qwen3_next(given: Arguments) -> ConfigObject:
    """Source: `qwen3_next.py`."""
    return _like_qwen3_next("qwen3_next", given)


def _qwen3_5(model_type: str) -> Callable[[Arguments], ConfigObject]:
    """Source: `qwen3_5.py`, the classes of the language part."""

    def build(given: Arguments) -> ConfigObject:
        if "text_config" in given:
            raise NotModelled(f"model type {model_type!r} with a text_config of its own")
        parameters = given.pop("rope_parameters", None)
        if given.get("rope_scaling") is None and parameters is not None:
            given["rope_scaling"] = parameters
        config = _like_qwen3_next(model_type, given)
        if config.get("rope_parameters") is None:
            config.set("rope_parameters", parameters or {})
        config.set("rope_parameters", parameters or config.get("rope_parameters"))
        return config

    return build


def _like_qwen3_next(model_type: str, given: Arguments) -> ConfigObject:
    """Qwen3-Next's `__init__`, which takes `layer_types` and keeps it nowhere."""
    facts = sglang_class(model_type)._replace(parameters=sglang_class("qwen3_next").parameters)
    arguments, rest = _split(facts, given)
    rest |= _pass_on(arguments, ("tie_word_embeddings",))
    config = make(facts, BASE, rest)
    del arguments["layer_types"]
    _assign(config, arguments)
    return config


def _kimi_linear(given: Arguments) -> ConfigObject:
    """Source: `kimi_linear.py`."""
    facts = sglang_class("kimi_linear")
    arguments, rest = _split(facts, given)
    rest |= _pass_on(arguments, ("pad_token_id", "bos_token_id", "eos_token_id", "tie_word_embeddings"))
    config = ConfigObject(facts, rest)
    with replayed("SGLang's Kimi Linear config cannot use the config"):
        if arguments["head_dim"] is None:
            arguments["head_dim"] = arguments["hidden_size"] // arguments["num_attention_heads"]
        if arguments["num_key_value_heads"] is None:
            arguments["num_key_value_heads"] = arguments["num_attention_heads"]
        if arguments["moe_router_activation_func"] not in ("softmax", "sigmoid"):
            raise Refused("moe_router_activation_func must be softmax or sigmoid")
        linear = arguments["linear_attn_config"]
        if linear is not None and (linear["kda_layers"] is None or linear["full_attn_layers"] is None):
            raise Refused("linear_attn_config needs kda_layers and full_attn_layers")
        _assign(config, arguments | {"n_routed_experts": arguments["num_experts"]})
    complete(config, BASE)
    return config


def _bailing_hybrid(given: Arguments) -> ConfigObject:
    """Source: `bailing_hybrid.py`."""
    facts = sglang_class("bailing_hybrid")
    arguments, rest = _split(facts, given)
    rest |= _pass_on(arguments, ("pad_token_id", "eos_token_id", "tie_word_embeddings"))
    config = ConfigObject(facts, rest)
    with replayed("SGLang's Bailing config cannot use the config"):
        heads = arguments["num_attention_heads"]
        arguments["head_dim"] = arguments["head_dim"] or arguments["hidden_size"] // heads
        if not arguments["kda_safe_gate"]:
            arguments["kda_lower_bound"] = None
        derived = {
            "num_linear_key_value_heads": heads,
            "qk_head_dim": arguments["qk_nope_head_dim"] + arguments["qk_rope_head_dim"],
            "use_kda": arguments["short_conv_kernel_size"] is not None,
            "for_nextn_model": False,
        }
        _assign(config, arguments | derived)
    complete(config, BASE)
    return config


def _alias(model_type: str) -> Callable[[Arguments], ConfigObject]:
    """DeepSeek-V3's class under another name, which is no longer `@strict`."""
    behaviour = TRANSFORMERS_CLASSES["deepseek_v3"]._replace(strict=False)
    return lambda given: make(sglang_class(model_type), behaviour, given)


def _muse_glimmer_assistant(given: Arguments) -> ConfigObject:
    """Source: `muse_glimmer.py`: no fields, and class attributes in place of two."""
    return make(sglang_class("muse_glimmer_assistant"), Behaviour(strict=False), given)


def _mellum(given: Arguments) -> ConfigObject:
    """The class that AutoConfig takes, again."""
    return make(transformers_class("mellum"), TRANSFORMERS_CLASSES["mellum"], given)


OWN_CLASSES: Final[Mapping[str, Callable[[Arguments], ConfigObject]]] = {
    "bailing_hybrid": _bailing_hybrid,
    "deepseek_v32": _alias("deepseek_v32"),
    "deepseek_v4": _alias("deepseek_v4"),
    "kimi_k2": _alias("kimi_k2"),
    "kimi_linear": _kimi_linear,
    "laguna": _laguna,
    "mellum": _mellum,
    "muse_glimmer_assistant": _muse_glimmer_assistant,
    "qwen3_5_moe_text": _qwen3_5("qwen3_5_moe_text"),
    "qwen3_5_text": _qwen3_5("qwen3_5_text"),
    "qwen3_next": _qwen3_next,
}
"""Model type -> what SGLang's own class makes of a config, which is used up."""
