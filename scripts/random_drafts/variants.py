"""Families that share a class with others, in the layouts and spellings of their own trainers."""

import random
from collections.abc import Callable, Mapping
from typing import Final

from random_drafts.case import Case
from random_drafts.families import backbone, dflash, dflash2, dspark, nemotron


def dspark_spellings(rng: random.Random) -> Case:
    """DSpark with its keys under other names, in another place, or with more than the engine reads."""
    case = dspark(rng)
    config, inner = case.config, case.dflash
    match case.rng.randrange(7):
        case 0:  # as DeepSeek-V4 prefixes them
            for key in ("markov_rank", "markov_head_type"):
                config[f"dspark_{key}"] = config.pop(key, None)
            config["dspark_block_size"] = case.setting("block_size") or 7
            config["dspark_noise_token_id"] = 5
        case 1:
            config["dspark_target_layer_ids"] = case.setting("target_layer_ids")
        case 2:
            own = {key: config[key] for key in ("markov_rank", "markov_head_type") if key in config}
            config["dspark_config"] = own
        case 3:
            inner["markov_rank"] = config["markov_rank"]
            if case.chance(0.5):
                del config["markov_rank"]
        case 4:
            config["confidence_head_with_markov"] = case.pick(True, False)
            config["enable_confidence_head"] = True
            width = case.sizes.hidden + case.pick(0, config["markov_rank"])
            case.dense({"confidence_head.proj.weight": [1, width], "confidence_head.proj.bias": [1]}, "F32")
        case 5:  # as a Bonsai draft: the level of noise goes in as well
            config |= {"log_snr_dim": 16, "log_snr_inference": 10.0}
            case.dense({"log_snr.0.weight": [16, 1], "log_snr.0.bias": [16]})
            case.dense({"log_snr.2.weight": [case.sizes.hidden, 16], "log_snr.2.bias": [case.sizes.hidden]})
        case _:
            config["sample_from_anchor"] = case.pick(True, False, None)
            config["model_type"] = case.pick("qwen3", "k3_dspark", "qwen3_moe", "minimax_m3")
    if case.chance(0.1):
        case.tensors["markov_head.markov_w2.bias"] = ("BF16", [case.sizes.vocab])
    return case


def dspark_without_markov(rng: random.Random) -> Case:
    """A draft whose class and Markov head do not agree."""
    case = backbone(rng, rng.choice(("DFlashDraftModel", "Qwen3DSparkModel", "DSparkDraftModel")))
    rank = case.pick(0, 16, None, "16")
    if case.chance(0.7):
        case.config["markov_rank"] = rank
    if case.chance(0.5):
        case.config["markov_head_type"] = case.pick("vanilla", None, "GATED", "other")
    if rank == 16:
        at = "markov_head."
        case.dense({f"{at}markov_w1.weight": [case.sizes.vocab, 16]})
        case.dense({f"{at}markov_w2.weight": [case.sizes.vocab, 16]})
    return case


def nemotron_with_sinks(rng: random.Random) -> Case:
    """The Nemotron 3.5 layout with attention sinks, which want a flag of the server."""
    case = nemotron(rng)
    case.config["attention_sink_bias"] = True
    for layer in range(case.sizes.layers):
        name = f"layers.{layer}.self_attn.attention_sink_bias"
        case.tensors[name] = (case.pick("F32", "BF16"), [case.sizes.heads])
    return case


def vendor_names(rng: random.Random) -> Case:
    """Any draft under the names of a native export, some of them below `model.`."""
    case = rng.choice((dflash, dflash2))(rng)
    case.rename(r"fc\.", "encoder.fc.")
    if case.chance(0.7):
        case.rename(r"hidden_norm\.", "encoder.output_norm_enc.")
    if case.chance(0.3):
        case.rename("", "model.")
    return case


def flat_speculators(rng: random.Random) -> Case:
    """As the speculators library writes a config: flat, with the layers' sizes in an object of their own."""
    case = dflash2(rng)
    inner = case.config.pop("dflash_config")
    case.config |= inner
    ids = case.config.pop("target_layer_ids", None)
    case.config["aux_hidden_state_layer_ids"] = ids
    case.config["speculators_model_type"] = case.pick("dflash", "dflash2", None)
    if case.chance(0.5):
        sizes = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size")
        case.config["transformer_layer_config"] = {key: case.config[key] for key in sizes}
    return case


VARIANTS: Final[Mapping[str, Callable[[random.Random], Case]]] = {
    "dsparks": dspark_spellings,
    "dsparkless": dspark_without_markov,
    "sinks": nemotron_with_sinks,
    "vendor": vendor_names,
    "speculators": flat_speculators,
}
