"""Make random case folders: drafts of every class, quantized in every layout, with faults.

    python scripts/random_cases.py OUT --count 1000 --seed 0

Each folder `family-method-number` holds a config.json and a tensors.json (name
-> [dtype, shape]), some an hf_quant_config.json and an args.json with the
options of the audit. The same seed and number make the same case, whatever the
count. A case is a draft of one family whose tensors are laid out from its
sizes, quantized as one of the known quantizers would do it or nearly so, and
then given up to four faults. What the real engines do with the cases is for
`record_cases.py` to say. Standard library only.
"""

import argparse
import json
import math
import random
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

Json = dict[str, Any]
Spec = tuple[str, list[int]]
"""A tensor: dtype, shape."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes from which a draft's tensors are laid out."""

    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    layers: int
    vocab: int
    taps: int


@dataclass(slots=True)
class Case:
    """A case in the making."""

    rng: random.Random
    sizes: Sizes
    config: Json
    tensors: dict[str, Spec]
    hf_quant_config: Json | None = None
    options: list[str] = field(default_factory=list)

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def pick(self, *values: Any) -> Any:
        return self.rng.choice(values)

    @property
    def dflash(self) -> Json:
        inner = self.config.get("dflash_config")
        return inner if isinstance(inner, dict) else {}

    def dense(self, shapes: Mapping[str, Iterable[int]], dtype: str = "BF16") -> None:
        self.tensors.update({name: (dtype, list(shape)) for name, shape in shapes.items()})

    def rename(self, pattern: str, replacement: str) -> None:
        """Rename every tensor that `pattern` matches at its start."""
        self.tensors = {re.sub("^" + pattern, replacement, name): spec for name, spec in self.tensors.items()}


# Sizes and the backbone that all families share


def some_sizes(rng: random.Random) -> Sizes:
    """Half of them are multiples of 128, as most published drafts have."""
    heads = rng.choice([2, 4, 4, 6, 8])
    kv_heads = rng.choice([divisor for divisor in (1, 2, 3, 4, 8) if heads % divisor == 0])
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
        ["sliding_attention"] * (layers + 1),
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
    if case.chance(0.1):
        inner["mask_token"] = "<|MASK|>"
    if case.chance(0.05):
        inner |= {"output_multiplier": case.pick(0.5, "2", 1), "final_logit_softcapping": case.pick(30.0, None, 0)}


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


# Families


def dflash(rng: random.Random) -> Case:
    case = backbone(rng, "DFlashDraftModel")
    if case.chance(0.2):
        _grouped_convolutions(case)
    return case


def model_types(rng: random.Random) -> Case:
    """A draft under the model type of another family, whose config class fills other keys."""
    case = backbone(rng, "DFlashDraftModel")
    case.config["model_type"] = case.pick(
        "qwen2", "llama", "mistral", "minimax_m2", "gpt_oss", "qwen3_moe", "gemma3_text", "dflash", None
    )
    if case.config["model_type"] is None:
        del case.config["model_type"]
    return case


def bias(rng: random.Random) -> Case:
    """As the drafts for gpt-oss: biases in the attention."""
    case = backbone(rng, case_class(rng, "DFlashDraftModel", "DFlash2DraftModel"))
    _biases(case)
    if case.config["architectures"] == ["DFlash2DraftModel"]:
        _selector(case)
    return case


def swiglu(rng: random.Random) -> Case:
    case = backbone(rng, "DFlashDraftModel")
    case.config |= {"hidden_act": "swigluoai", "swiglu_alpha": 1.702, "swiglu_limit": case.pick(7.0, "7", 7)}
    return case


def gemma(rng: random.Random) -> Case:
    case = backbone(rng, case_class(rng, "DFlashDraftModel", "DFlashLagunaForCausalLM"))
    case.config["use_gemma_norm"] = True
    if case.config["architectures"] == ["DFlashLagunaForCausalLM"]:
        _laguna(case)
    return case


def mimo(rng: random.Random) -> Case:
    """Attention sinks, a scale of the values, and names below `model.`."""
    case = backbone(rng, "DFlashDraftModel")
    case.dflash.update(attention_sink_bias=True, attention_value_scale=case.pick(0.7, 1, None))
    for layer in range(case.sizes.layers):
        case.tensors[f"layers.{layer}.self_attn.attention_sink_bias"] = (case.pick("BF16", "F32"), [case.sizes.heads])
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
    case = backbone(rng, case_class(rng, *names))
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
    hidden, block = own or draft, inner.get("block_size", case.config.get("block_size"))
    middle, topk, heads, factor = (head[k] for k in ("mlp_ratio", "candidate_topk", "num_heads", "factor_dim"))
    linears = {
        "pass_hidden_proj": (hidden, draft), "context_proj": (hidden, draft), "anchor_out_head": (factor, hidden),
        "feature_mlp.up_proj": (hidden, 5), "feature_mlp.down_proj": (hidden, hidden),
        "factor_input_proj": (hidden, 3 * hidden), "out_head": (factor, hidden), "in_head": (factor, hidden),
    }  # fmt: skip
    if hidden != draft:
        linears["token_proj"] = (hidden, draft)
    at = "lilicorr."
    case.dense({f"{at}feature_norm.weight": [5], f"{at}feature_norm.bias": [5]})
    case.dense({f"{at}output_norm.weight": [hidden], f"{at}anchor_norm.weight": [hidden]})
    case.dense({f"{at}slot_embedding": [1, 1, block - 1, 1, hidden], f"{at}rank_embedding": [1, 1, 1, topk, hidden]})
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
    case = backbone(rng, case_class(rng, *names))
    _markov(case, case.pick("vanilla", "gated", "rnn", "Vanilla"))
    if case.chance(0.4):
        case.config["enable_confidence_head"] = True
        width = case.sizes.hidden + case.config["markov_rank"]
        case.dense({"confidence_head.proj.weight": [1, width], "confidence_head.proj.bias": [1]}, case.pick("F32", "BF16"))
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
        case.dense({f"{at}joint_proj.weight": [3 * rank, 2 * rank + s.hidden], f"{at}joint_proj.bias": [3 * rank]})


def nemotron(rng: random.Random) -> Case:
    """The Nemotron 3.5 layout, which is told by many keys together; some lack one of them."""
    case = backbone(rng, case_class(rng, "DFlashDraftModel", "Qwen3DSparkModel"))
    s, inner = case.sizes, case.dflash
    ids = inner.get("target_layer_ids", case.config.get("target_layer_ids"))
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


def case_class(rng: random.Random, *names: str) -> str:
    return rng.choice(names)


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


# Quantizers

IGNORED: Final = (
    r"re:.*self_attn\.(q|k|v)_proj$", r"re:.*self_attn\.q_proj$", "re:.*self_attn.*", "re:.*mlp.*", "re:.*gate_proj",
    "re:.*qkv_proj$", "re:.*o_proj$", "re:.*gate_up_proj", "re:qkv_proj", "re:self_attn", "re:^fc$", "re:.*fc$",
    r"re:.*\.fc$", r"re:layers\.0\..*", r"re:.*layers\.1\.self_attn\.(q|k|v)_proj", "re:.*norm.*", "re:.*lilicorr.*",
    "re:.*kernel_projection$", "re:.*candidate_selector.*", "re:.*markov_head.*", "re:(", "fc", "model.fc", "lm_head",
    "o_proj", "self_attn.o_proj", "down_proj", "qkv_proj", "gate_up_proj", "layers.0.mlp.down_proj", "mlp", "q_proj",
    "model.layers.0.self_attn.o_proj", "layers.0.self_attn.qkv_proj", "layers.0.self_attn", "g_proj", "layers.0",
    "embed_tokens", "markov_head.markov_w2", "lilicorr", "lilicorr.context_proj", "Linear", "ReplicatedLinear", "",
)  # fmt: skip

GLOBS: Final = (
    "fc", "*fc", "fc*", "layers.0*", "layers.0.self_attn*", "*self_attn*", "*qkv_proj", "*q_proj", "*k_proj", "*v_proj",
    "candidate_selector*", "*kernel_projection", "lm_head", "layers.*.mlp.down_proj", "o_proj", "qkv_proj", "*mlp*",
    "model.layers.0.self_attn.o_proj", "embed_tokens", "markov_head*", "lilicorr*", "*", "gate_up_proj", "layers",
    "*.gate_proj", "*.up_proj", "self_attn", "layers.0.self_attn.q_proj", "model.fc",
)  # fmt: skip

SMALL: Final = re.compile("candidate|kernel_proj|lilicorr|markov|confidence|prefix_gru|embed_proj|embed_tokens|g_proj")
"""Linears that most quantizers leave dense."""

Layer = Callable[[int, int], Mapping[str, Spec]]
"""(outputs, inputs) -> the tensors of a quantized linear by their own names."""


def linears(case: Case) -> list[str]:
    """The modules whose weight is a matrix."""
    weights = (name for name, (_, shape) in case.tensors.items() if name.endswith(".weight") and len(shape) == 2)
    return [name.removesuffix(".weight") for name in weights if "embed_tokens" not in name and "markov_w1" not in name]


def left_dense(entry: str, module: str) -> bool:
    """Whether a quantizer takes `entry` for `module`: as a regex, a glob, or the last parts of the name."""
    try:
        if entry.startswith("re:"):
            return re.match(entry[3:], module) is not None
    except re.error:
        return False
    if "*" in entry:
        return re.fullmatch(entry.replace(".", r"\.").replace("*", ".*"), module) is not None
    return bool(entry) and f".{module}".endswith(f".{entry}")


def quantize(case: Case, layer: Layer, ignore: Iterable[str], fits: Callable[[int, int], bool]) -> None:
    """Replace the weights of the linears that are not ignored, are large and fit."""
    small = case.chance(0.15)
    entries = list(ignore)
    for module in linears(case):
        outputs, inputs = case.tensors[f"{module}.weight"][1]
        kept = any(left_dense(entry, module) for entry in entries) or not fits(outputs, inputs)
        if kept or (SMALL.search(module) and not small and not module.endswith("markov_w2")):
            continue
        if module.endswith("markov_w2") and "has_embed_tokens" not in case.config and not small:
            continue
        del case.tensors[f"{module}.weight"]
        case.tensors |= {f"{module}.{name}": spec for name, spec in layer(outputs, inputs).items()}


def some(case: Case, entries: tuple[str, ...], most: int = 4) -> list[str]:
    return case.rng.sample(entries, case.rng.choice([0, 0, 1, 2, most]))


def group_size(case: Case, *sizes: int) -> int:
    """A group size that divides the inputs of the layers, or nearly always so."""
    s = case.sizes
    inputs = math.gcd(s.hidden, s.intermediate, s.heads * s.head_dim)
    fitting = [size for size in sizes if inputs % size == 0]
    return int(case.rng.choice(fitting)) if fitting and case.chance(0.9) else int(case.rng.choice(sizes))


def up(number: int, divisor: int) -> int:
    return -(-number // divisor)


def arguments(case: Case, bits: int, kind: str, strategy: str, **more: Any) -> Json:
    """The arguments of compressed-tensors, as short or as long as some version writes them."""
    known: Json = {"num_bits": bits, "type": kind, "strategy": strategy, "symmetric": True, "dynamic": False}
    if case.chance(0.7):
        known |= {"group_size": None, "actorder": None, "block_structure": None, "observer": "minmax"}
        known |= {"observer_kwargs": {}}
    if case.chance(0.3):
        known |= {"scale_dtype": case.pick(None, "bfloat16"), "zp_dtype": None}
    return known | more


def activations(case: Case, kind: str, **more: Any) -> Json:
    return arguments(case, 8, kind, "token", observer=None) | {"dynamic": True} | more


def compressed(case: Case, layout: str, weights: Json, inputs: Json | None = None) -> list[str]:
    """Write a compressed-tensors config with one group; its ignore list comes back."""
    ignore = some(case, IGNORED)
    targets = case.pick(
        *[["Linear"]] * 10, ["re:.*"], ["re:.*proj", "fc"], ["re:.*proj$", "re:.*fc$", "re:.*head$", "re:.*w2$"],
        ["re:.*self_attn.*", "re:.*mlp.*", "fc"], ["QKVParallelLinear", "MergedColumnParallelLinear", "RowParallelLinear"],
        ["re:.*(q|k|v|o|gate|up|down|g)_proj$", "Linear"], ["linear"], ["ParallelLinear", "ReplicatedLinear"],
        ["re:.*_proj$", "Linear"], [],
    )  # fmt: skip
    group: Json = {"targets": targets, "weights": weights, "input_activations": inputs, "output_activations": None}
    config: Json = {"quant_method": "compressed-tensors", "config_groups": {"group_0": group}, "ignore": ignore}
    match case.rng.randrange(6):
        case 0:
            group["format"] = layout
            config["format"] = case.pick("mixed-precision", None, layout)
        case 1:
            config["format"] = layout
        case 2:
            group["format"] = layout
        case _:
            group["format"] = config["format"] = layout
    config |= {"quantization_status": "compressed", "kv_cache_scheme": None}
    if case.chance(0.15):
        config["kv_cache_scheme"] = case.pick(
            arguments(case, 8, "float", "tensor"), arguments(case, 8, "int", "tensor"), {},
            arguments(case, 8, "float", "tensor", dynamic=True), {"type": "float", "num_bits": 8, "strategy": "tensor"},
        )  # fmt: skip
    if case.chance(0.1):
        config["sparsity_config"] = case.pick(
            {}, {"format": "dense"}, {"format": "dense", "sparsity_structure": "unstructured", "targets": ["Linear"]},
            {"format": "sparse-24-bitmask", "sparsity_structure": "2:4", "targets": ["Linear"], "ignore": ["fc"]},
            {"format": "dense", "sparsity_structure": "2:4", "targets": ["re:.*mlp.*"]}, {"ignore": []},
        )  # fmt: skip
    if case.chance(0.1):
        config["packed_modules_mapping"] = case.pick(
            {}, None, {"qkv_proj": ["q_proj", "k_proj", "v_proj"]}, {"gate_up_proj": ["gate_proj", "up_proj"]},
            {"qkv_proj": ["q_proj", "k_proj", "v_proj"], "gate_up_proj": ["gate_proj", "up_proj"]},
        )  # fmt: skip
    if case.chance(0.1):
        config |= {"global_compression_ratio": None, "transform_config": {}, "version": "0.17.0"}
    key = "compression_config" if case.chance(0.05) else "quantization_config"
    case.config[key] = config
    return ignore


def _everything(outputs: int, inputs: int) -> bool:
    del outputs, inputs
    return True


def packed_integers(case: Case, actorder: Any = None, symmetric: bool = True) -> None:
    bits, strategy = case.pick(4, 8), "group" if actorder else case.pick("group", "group", "channel")
    size = group_size(case, 32, 64, 128) if strategy == "group" else None
    weights = arguments(case, bits, "int", strategy, group_size=size, symmetric=symmetric)
    if actorder is not None:
        weights["actorder"] = actorder
    ignore = compressed(case, "pack-quantized", weights)
    scale, whole = case.pick("BF16", "BF16", "F16", "F32"), case.pick("I64", "I64", "I32")

    def layer(outputs: int, inputs: int) -> Mapping[str, Spec]:
        groups = up(inputs, size) if size else 1
        found: dict[str, Spec] = {
            "weight_packed": ("I32", [outputs, up(inputs * bits, 32)]),
            "weight_scale": (scale, [outputs, groups]),
            "weight_shape": (whole, [2]),
        }
        if not symmetric:
            found["weight_zero_point"] = ("I32", [up(outputs * bits, 32), groups])
        if actorder in ("group", "dynamic", True):
            found["weight_g_idx"] = ("I32", [inputs])
        return found

    quantize(case, layer, ignore, lambda _, inputs: size is None or inputs % size == 0)


def asymmetric_integers(case: Case) -> None:
    packed_integers(case, symmetric=False)


def ordered_integers(case: Case) -> None:
    packed_integers(case, case.pick("group", "weight", "static", "dynamic", True, False), case.chance(0.8))


def integers(case: Case) -> None:
    """INT8 weights and activations."""
    strategy, static = case.pick("channel", "channel", "tensor"), case.chance(0.4)
    symmetric = case.chance(0.6)
    inputs = activations(case, "int", symmetric=symmetric)
    if static:
        inputs |= {"strategy": "tensor", "dynamic": False}
    ignore = compressed(case, "int-quantized", arguments(case, 8, "int", strategy), inputs)
    scale, scalar = case.pick("BF16", "F32"), case.pick([1], [1], [])

    def layer(outputs: int, inputs: int) -> Mapping[str, Spec]:
        found: dict[str, Spec] = {"weight": ("I8", [outputs, inputs])}
        found["weight_scale"] = (scale, [outputs, 1] if strategy == "channel" else scalar)
        if static:
            found["input_scale"] = (scale, scalar)
            if not symmetric:
                found["input_zero_point"] = ("I8", scalar)
        return found

    quantize(case, layer, ignore, _everything)


def floats(case: Case, weights_alone: bool = False) -> None:
    """FP8 weights, with FP8 activations or without."""
    strategy = case.pick("channel", "channel", "tensor", "block")
    static = not weights_alone and strategy != "block" and case.chance(0.3)
    weights = arguments(case, 8, "float", strategy)
    if strategy == "block":
        weights["block_structure"] = case.pick([128, 128], [128, 128], "128x128", [64, 32])
    inputs = None if weights_alone else activations(case, "float")
    if inputs and strategy == "block":
        inputs |= {"strategy": "group", "group_size": 128}
    if inputs and static:
        inputs |= {"strategy": "tensor", "dynamic": False}
    ignore = compressed(case, case.pick("float-quantized", "float-quantized", "naive-quantized"), weights, inputs)
    scale, scalar = case.pick("BF16", "F32"), case.pick([1], [1], [])
    rows, columns = (64, 32) if weights.get("block_structure") == [64, 32] else (128, 128)

    def layer(outputs: int, inputs: int) -> Mapping[str, Spec]:
        scales = {"channel": [outputs, 1], "tensor": scalar, "block": [up(outputs, rows), up(inputs, columns)]}
        found: dict[str, Spec] = {"weight": ("F8_E4M3", [outputs, inputs]), "weight_scale": (scale, scales[strategy])}
        return found | ({"input_scale": (scale, scalar)} if static else {})

    quantize(case, layer, ignore, _everything)


def weight_only_floats(case: Case) -> None:
    floats(case, weights_alone=True)


def compressed_fp4(case: Case) -> None:
    """NVFP4 of weights alone, or of activations too."""
    both = case.chance(0.4)
    weights = arguments(case, 4, "float", "tensor_group", group_size=16)
    inputs = arguments(case, 4, "float", "tensor_group", group_size=16, dynamic="local") if both else None
    ignore = compressed(case, "nvfp4-pack-quantized", weights, inputs)

    def layer(outputs: int, inputs: int) -> Mapping[str, Spec]:
        found = fp4_layer(outputs, inputs, "weight_packed", "weight_global_scale", [1])
        return found | ({"input_global_scale": ("F32", [1])} if both else {})

    quantize(case, layer, ignore, lambda _, inputs: inputs % 16 == 0)


def fp4_layer(outputs: int, inputs: int, weight: str, scalar: str, shape: list[int]) -> dict[str, Spec]:
    return {
        weight: ("U8", [outputs, inputs // 2]),
        "weight_scale": ("F8_E4M3", [outputs, inputs // 16]),
        scalar: ("F32", shape),
    }


def mixed(case: Case) -> None:
    """Two config groups, each with its own targets and layout."""
    size = group_size(case, 32, 64, 128)
    attention = case.pick(["re:.*self_attn.*", "re:.*fc$"], ["Linear"], ["re:.*[qkvo]_proj$", "fc"])
    mlp = case.pick(["re:.*mlp.*"], ["re:.*(gate|up|down)_proj$"], ["re:.*gate_up_proj$", "re:.*down_proj$"])
    groups: Json = {
        "group_0": {"targets": attention, "weights": arguments(case, 8, "float", "channel"), "input_activations": None},
        "group_1": {"targets": mlp, "weights": arguments(case, 4, "int", "group", group_size=size)},
    }
    layouts = ("float-quantized", "pack-quantized")
    for group, layout in zip(groups.values(), layouts, strict=True):
        if case.chance(0.9):
            group["format"] = layout
    if case.chance(0.3):
        groups = dict(reversed(groups.items()))
    ignore = some(case, IGNORED, most=2)
    case.config["quantization_config"] = {
        "quant_method": "compressed-tensors", "format": case.pick("mixed-precision", *layouts), "ignore": ignore,
        "config_groups": groups,
    }  # fmt: skip

    def floating(outputs: int, inputs: int) -> Mapping[str, Spec]:
        return {"weight": ("F8_E4M3", [outputs, inputs]), "weight_scale": ("F32", [outputs, 1])}

    def packed(outputs: int, inputs: int) -> Mapping[str, Spec]:
        packed_shape, scales = [outputs, up(inputs, 8)], [outputs, up(inputs, size)]
        return {
            "weight_packed": ("I32", packed_shape), "weight_scale": ("BF16", scales), "weight_shape": ("I64", [2]),
        }  # fmt: skip

    quantize(case, floating, [*ignore, "re:.*mlp.*"], _everything)
    quantize(case, packed, [*ignore, "re:.*self_attn.*", "fc"], lambda _, inputs: inputs % size == 0)


def odd_arguments(case: Case) -> None:
    """A valid compressed-tensors config in which some argument is spelled or typed in another way."""
    case.pick(packed_integers, integers, floats, compressed_fp4)(case)
    declared = case.config.get("quantization_config") or case.config.get("compression_config")
    group = declared["config_groups"]["group_0"]
    side = case.pick("weights", "weights", "input_activations")
    for _ in range(case.pick(1, 1, 2)):
        if not isinstance(group[side], dict):
            side = "weights"
        key, value = case.pick(
            ("strategy", None), ("strategy", "GROUP"), ("strategy", "token"), ("strategy", "attn_head"), ("strategy", "x"),
            ("num_bits", "4"), ("num_bits", 4.0), ("num_bits", 3), ("num_bits", None), ("num_bits", True), ("num_bits", 2),
            ("type", "INT"), ("type", None), ("type", "float"), ("symmetric", "true"), ("symmetric", 0), ("symmetric", None),
            ("symmetric", "maybe"), ("group_size", -1), ("group_size", "32"), ("group_size", 0), ("group_size", 32.0),
            ("group_size", 32.5), ("group_size", -2), ("dynamic", "local"), ("dynamic", True), ("dynamic", 1),
            ("dynamic", "LOCAL"), ("dynamic", "yes"), ("dynamic", None), ("actorder", "weight"), ("actorder", False),
            ("actorder", "Group"), ("actorder", 1), ("actorder", "no"), ("block_structure", "128x128"),
            ("block_structure", [128]), ("block_structure", "a"), ("scale_dtype", "float16"), ("scale_dtype", "torch.x"),
            ("scale_dtype", 5), ("zp_dtype", "int8"), ("zp_dtype", "zzz"), ("observer", 5), ("observer", None),
            ("observer_kwargs", None), ("observer_kwargs", []), ("averaging_constant", 0.01), ("is_mx", True),
        )  # fmt: skip
        group[side][key] = value
        if case.chance(0.2):
            del group[side][key]


def odd_compressed(case: Case) -> None:
    """A valid compressed-tensors config in which some other key is of another type or missing."""
    case.pick(packed_integers, integers, floats, compressed_fp4)(case)
    declared = case.config.get("quantization_config") or case.config.get("compression_config")
    group = declared["config_groups"]["group_0"]
    where, key, value = case.pick(
        (declared, "ignore", None), (declared, "ignore", "fc"), (declared, "ignore", {"fc": 1}), (declared, "ignore", [5]),
        (declared, "format", 5), (declared, "format", "marlin-24"), (declared, "format", "int-quantized"),
        (declared, "format", "dense"), (group, "format", "pack-quantized"), (group, "format", "FLOAT-QUANTIZED"),
        (declared, "config_groups", {}), (declared, "config_groups", None), (declared, "config_groups", []),
        (group, "targets", None), (group, "targets", "Linear"), (group, "targets", ["Linear", 5]), (group, "weights", None),
        (group, "weights", {}), (group, "weights", []), (group, "input_activations", []), (group, "input_activations", {}),
        (group, "input_activations", {"num_bits": 8}), (declared, "kv_cache_scheme", []), (declared, "kv_cache_scheme", 1),
        (declared, "kv_cache_scheme", "fp8"), (declared, "sparsity_config", []), (declared, "sparsity_config", 5),
        (declared, "sparsity_config", {"format": "odd", "targets": ["Linear"]}), (declared, "quant_method", "Compressed-Tensors"),
        (declared, "quant_method", "compressed_tensors"), (declared, "linear_fp8_config", {"quant_method": "fp8"}),
        (declared["config_groups"], "group_1", {"targets": ["re:.*mlp.*"], "weights": {"num_bits": 8}}),
        (declared["config_groups"], "group_1", {"targets": ["fc"], "weights": group["weights"], "format": "x"}),
    )  # fmt: skip
    where[key] = value
    if case.chance(0.15):
        del where[key]


def fp8(case: Case) -> None:
    """The method `fp8`: by tensor or by block."""
    blocks, static = case.chance(0.5), case.chance(0.3)
    block = case.pick([128, 128], [128, 128], [64, 64], [1, 128], [128], None, [0, 0], "ab")
    key = case.pick("modules_to_not_convert", "modules_to_not_convert", "ignored_layers")
    ignore = [entry for entry in some(case, IGNORED) if not entry.startswith("re:")]
    config: Json = {"quant_method": "fp8", "activation_scheme": "static" if static else "dynamic"}
    if blocks:
        config["weight_block_size"] = block
    if case.chance(0.8):
        config[key] = ignore
    if case.chance(0.1):
        config["ignored_layers"] = case.pick([], None, "fc", ["fc"], [5])
    if case.chance(0.2):
        config |= {"fmt": "e4m3", "scale_fmt": case.pick("ue8m0", None)}
    if case.chance(0.1):
        config["activation_scheme"] = case.pick("DYNAMIC", None, "static", "token")
    case.config["quantization_config"] = config
    rows, columns = block if isinstance(block, list) and len(block) == 2 and all(block) else (128, 128)
    scale = case.pick("F32", "F32", "BF16", "F8_E8M0", "U8")

    def layer(outputs: int, inputs: int) -> Mapping[str, Spec]:
        found: dict[str, Spec] = {"weight": ("F8_E4M3", [outputs, inputs])}
        if blocks:
            return found | {"weight_scale_inv": (scale, [up(outputs, rows), up(inputs, columns)])}
        found["weight_scale"] = ("F32", case.pick([], [1]))
        return found | ({"input_scale": ("F32", [])} if static else {})

    quantize(case, layer, ignore, _everything)


def modelopt(case: Case, algorithm: str, layer: Layer, ignore: list[str], fits: Callable[[int, int], bool]) -> None:
    """Declare a ModelOpt quantization, in config.json or in its own file, and apply it."""
    cache = case.pick(None, None, "FP8", "NVFP4")
    if case.chance(0.5) or "has_embed_tokens" in case.config:
        config: Json = {"quant_method": "modelopt", "quant_algo": algorithm, "producer": {"name": "modelopt"}}
        config[case.pick("ignore", "ignore", "ignore", "exclude_modules", "modules_to_not_convert")] = ignore
        if case.chance(0.7):
            config["group_size"] = case.pick(16, 16, 16, 32)
        if case.chance(0.3):
            config["kv_cache_scheme"] = case.pick(None, {"num_bits": 8, "type": "float", "dynamic": False}, {}, "FP8")
        if case.chance(0.2):
            config["kv_cache_quant_algo"] = cache
        if case.chance(0.3):
            weights = {"num_bits": 4, "type": "float", "group_size": 16}
            config["config_groups"] = {"group_0": {"weights": weights, "targets": ["Linear"]}}
        if case.chance(0.1):
            config["quant_method"] = case.pick("modelopt_fp4", "modelopt_fp8", "modelopt_mixed", "MODELOPT", "mxfp8")
        if case.chance(0.05):
            del config["quant_method"]
        case.config["quantization_config"] = config
    else:
        section: Json = {"quant_algo": algorithm, "kv_cache_quant_algo": cache, "exclude_modules": ignore}
        if case.chance(0.85):
            section["group_size"] = 16
        if case.chance(0.1):
            section["exclude_modules"] = case.pick(None, [], "fc")
        case.hf_quant_config = {"producer": {"name": "modelopt", "version": "0.39.0"}, "quantization": section}
        if case.chance(0.1):
            case.hf_quant_config = section
    quantize(case, layer, ignore, fits)


def modelopt_fp8(case: Case) -> None:
    def layer(outputs: int, inputs: int) -> Mapping[str, Spec]:
        scalar = case.pick([], [], [1])
        weight: Spec = ("F8_E4M3", [outputs, inputs])
        return {"weight": weight, "weight_scale": ("F32", scalar), "input_scale": ("F32", scalar)}

    modelopt(case, "FP8", layer, some(case, GLOBS), _everything)


def modelopt_fp4(case: Case) -> None:
    algorithm = case.pick("NVFP4", "NVFP4", "NVFP4_AWQ", "W4A16_NVFP4", "W4A16_NVFP4")
    if "has_embed_tokens" in case.config and case.chance(0.9):
        algorithm = "W4A16_NVFP4"
    with_inputs = algorithm != "W4A16_NVFP4" or case.chance(0.2)

    def layer(outputs: int, inputs: int) -> Mapping[str, Spec]:
        found = fp4_layer(outputs, inputs, "weight", "weight_scale_2", case.pick([], [], [1]))
        if with_inputs:
            found["input_scale"] = ("F32", [])
        if algorithm == "NVFP4_AWQ":
            found["pre_quant_scale"] = ("BF16", [inputs])
        return found

    modelopt(case, algorithm, layer, some(case, GLOBS), lambda _, inputs: inputs % 16 == 0)


def modelopt_mxfp8(case: Case) -> None:
    def layer(outputs: int, inputs: int) -> Mapping[str, Spec]:
        return {"weight": ("F8_E4M3", [outputs, inputs]), "weight_scale": ("U8", [outputs, up(inputs, 32)])}

    modelopt(case, "MXFP8", layer, some(case, GLOBS), _everything)


def modelopt_mixed(case: Case) -> None:
    """Each layer with an algorithm of its own."""
    algorithms = ["FP8", "NVFP4", "W4A16_NVFP4", "FP8_PB_WO", "MXFP8", "INT8", "fp8"]
    weights = [6, 6, 3, 2, 0.3, 0.3, 1]
    layers: dict[str, Json] = {}
    per_kind = {key: case.rng.choices(algorithms, weights)[0] for key in ("self_attn", "mlp", "fc", "lilicorr", "markov")}
    prefix = case.pick("", "", "", "model.")
    for module in linears(case):
        kind = next((key for key in per_kind if key in module), None)
        if kind is None or SMALL.search(module) or case.chance(0.05):
            continue
        algorithm = per_kind[kind] if case.chance(0.98) else case.rng.choice(algorithms)
        layers[prefix + module] = {"quant_algo": algorithm}
        if algorithm != "FP8" and case.chance(0.8):
            layers[prefix + module]["group_size"] = 128 if algorithm == "FP8_PB_WO" else 16
        outputs, inputs = case.tensors.pop(f"{module}.weight")[1]
        found = _mixed_layer(algorithm, outputs, inputs)
        case.tensors |= {f"{module}.{name}": spec for name, spec in found.items()}
    if case.chance(0.3):
        # As the engine is asked: by the bare or the fused name.
        layers |= {name: {"quant_algo": per_kind["self_attn"]} for name in ("qkv_proj", "o_proj")}
        layers |= {name: {"quant_algo": per_kind["mlp"]} for name in ("gate_up_proj", "down_proj")}
    ignore = some(case, GLOBS, most=2)
    section: Json = {"quant_algo": "MIXED_PRECISION", "quantized_layers": layers, "kv_cache_quant_algo": case.pick(None, "FP8")}
    section["exclude_modules"] = ignore
    if case.chance(0.3):
        case.config["quantization_config"] = {"quant_method": case.pick("modelopt", "modelopt_mixed"), **section}
        if case.chance(0.5):
            return
    case.hf_quant_config = {"producer": {"name": "modelopt"}, "quantization": section}


def _mixed_layer(algorithm: str, outputs: int, inputs: int) -> Mapping[str, Spec]:
    if "NVFP4" in algorithm:
        return fp4_layer(outputs, inputs, "weight", "weight_scale_2", []) | {"input_scale": ("F32", [])}
    found: dict[str, Spec] = {"weight": ("F8_E4M3", [outputs, inputs])}
    if algorithm == "FP8_PB_WO":
        return found | {"weight_scale_inv": ("F32", [up(outputs, 128), up(inputs, 128)])}
    if algorithm == "MXFP8":
        return found | {"weight_scale_inv": ("U8", [outputs, up(inputs, 32)])}
    return found | {"weight_scale": ("F32", []), "input_scale": ("F32", [])}


def gptq_layer(case: Case, bits: int, size: int, order: bool) -> Layer:
    scale = case.pick("F16", "F16", "BF16", "F32")

    def layer(outputs: int, inputs: int) -> Mapping[str, Spec]:
        groups = 1 if size <= 0 else up(inputs, size)
        found: dict[str, Spec] = {
            "qweight": ("I32", [up(inputs * bits, 32), outputs]),
            "qzeros": ("I32", [groups, up(outputs * bits, 32)]),
            "scales": (scale, [groups, outputs]),
        }
        return found | ({"g_idx": ("I32", [inputs])} if order else {})

    return layer


def gptq(case: Case) -> None:
    bits, size = case.pick(4, 4, 4, 8, 8, 2, 3), case.pick(-1, group_size(case, 32, 64, 128), group_size(case, 128, 32, 16))
    order = case.chance(0.3)
    config: Json = {"quant_method": "gptq", "bits": bits, "group_size": size, "desc_act": order, "sym": case.chance(0.9)}
    if case.chance(0.25):
        config["dynamic"] = {
            case.pick(r"-:.*self_attn.*", r"-:.*down_proj", "-:fc", r"+:.*mlp.*", r".*\.o_proj", "+:o_proj", "-:.*"):
            case.pick({}, {"bits": 8}, {"bits": 4, "group_size": 32}, {"desc_act": True}, {"group_size": "64"}, False, None)
        }  # fmt: skip
    if case.chance(0.2):
        config |= {"lm_head": case.pick(True, False), "checkpoint_format": case.pick("gptq", "gptq_v2", "marlin")}
    if case.chance(0.1):
        config |= case.pick(
            {"bits": "4"}, {"bits": 4.0}, {"sym": None}, {"sym": 1}, {"group_size": "128"}, {"desc_act": None},
            {"group_size": 48}, {"quant_method": "GPTQ"}, {"dynamic": []}, {"is_marlin_format": True},
            {"quant_method": "gptq_marlin"},
        )  # fmt: skip
    case.config["quantization_config"] = config
    ignore = case.pick([], [], ["fc"], ["re:.*self_attn.*"])
    layer = gptq_layer(case, bits, size, order or case.chance(0.7))
    quantize(case, layer, ignore, lambda outputs, inputs: size <= 0 or inputs % size == 0)


def awq_layer(case: Case, size: int) -> Layer:
    scale = case.pick("F16", "F16", "BF16")

    def layer(outputs: int, inputs: int) -> Mapping[str, Spec]:
        groups = 1 if size <= 0 else up(inputs, size)
        packed = up(outputs, 8)
        return {
            "qweight": ("I32", [inputs, packed]), "qzeros": ("I32", [groups, packed]), "scales": (scale, [groups, outputs]),
        }  # fmt: skip

    return layer


def awq(case: Case) -> None:
    size = case.pick(-1, group_size(case, 32, 64, 128), group_size(case, 128, 32, 64))
    ignore = [entry for entry in some(case, IGNORED) if not entry.startswith("re:")]
    config: Json = {"quant_method": "awq", "bits": 4, "group_size": size, "zero_point": True, "version": "gemm"}
    if case.chance(0.8):
        config["modules_to_not_convert"] = ignore
    if case.chance(0.2):
        config |= case.pick(
            {"zero_point": False}, {"zero_point": None}, {"bits": 8}, {"bits": "4"}, {"bits": 4.0}, {"group_size": 48},
            {"modules_to_not_convert": None}, {"modules_to_not_convert": "fc"}, {"modules_to_not_convert": [5]},
            {"quant_method": "AWQ"}, {"quant_method": "awq_marlin"}, {"w_bit": 4}, {"zero_point": 1},
        )  # fmt: skip
    case.config["quantization_config"] = config
    layer = awq_layer(case, size)
    quantize(case, layer, ignore, lambda outputs, inputs: outputs % 8 == 0 and (size <= 0 or inputs % size == 0))


def auto_round(case: Case) -> None:
    bits, size = case.pick(4, 4, 4, 8, 2, 3), case.pick(-1, group_size(case, 32, 64, 128), group_size(case, 128, 32, 64))
    packing = case.pick("auto_round:auto_gptq", "auto_round:auto_gptq", "auto_round:auto_awq", "auto_round", None)
    config: Json = {"quant_method": "auto-round", "bits": bits, "group_size": size, "sym": case.chance(0.85)}
    config |= {"data_type": "int"} | ({} if packing is None else {"packing_format": packing})
    if case.chance(0.3):
        config[case.pick("block_name_to_quantize", "to_quant_block_names")] = case.pick(
            "layers", "model.layers", "layers,fc", ["layers"], ["qkv_proj", "o_proj"], "qkv_proj,down_proj", None, [], [5]
        )
    if case.chance(0.3):
        config["extra_config"] = {
            case.pick("fc", "o_proj", ".*o_proj", "layers.0.mlp.down_proj", r".*(q|k|v)_proj", ".*qkv_proj", "(", ".*"):
            case.pick({"bits": 16}, {"bits": 8}, {"bits": 16, "data_type": "float"}, {"group_size": 32}, {"sym": False}, {})
        }  # fmt: skip
    if case.chance(0.15):
        config |= case.pick(
            {"backend": "gptq"}, {"backend": "awq:marlin"}, {"backend": "x"}, {"desc_act": True}, {"data_type": "fp"},
            {"bits": "4"}, {"extra_config": []}, {"sym": None}, {"group_size": None}, {"quant_method": "intel/auto-round"},
            {"quant_method": "Auto-Round"},
        )  # fmt: skip
    case.config["quantization_config"] = config
    ignore = case.pick([], [], ["fc"])
    layer = awq_layer(case, size) if packing == "auto_round:auto_awq" else gptq_layer(case, bits, size, case.chance(0.3))
    quantize(case, layer, ignore, lambda outputs, inputs: outputs % 8 == 0 and (size <= 0 or inputs % size == 0))


def eight_bits(case: Case) -> None:
    """`w8a8_int8` and `w8a8_fp8`, declared or asked for over compressed-tensors."""
    method, dtype = case.pick(("w8a8_int8", "I8"), ("w8a8_int8", "I8"), ("w8a8_fp8", "F8_E4M3"))
    if case.chance(0.3):
        (integers if dtype == "I8" else floats)(case)
        case.options += ["--quantization", case.pick(method, method, "auto-round-int8")]
        return
    method = case.pick(method, method, method, method, "auto-round-int8") if dtype == "I8" else method
    ignore = some(case, IGNORED, most=2)
    case.config["quantization_config"] = {"quant_method": method}
    if case.chance(0.7):
        case.config["quantization_config"]["ignore"] = ignore
    scale = case.pick("F32", "F32", "BF16")

    def layer(outputs: int, inputs: int) -> Mapping[str, Spec]:
        return {"weight": (dtype, [outputs, inputs]), "weight_scale": (scale, [outputs, 1])}

    quantize(case, layer, ignore, _everything)


def exotic(case: Case) -> None:
    """Methods for experts, which make linears FP8, or that few serve."""
    method = case.pick("w4afp8", "w4afp8", "nvfp4_online", "mxfp8", "mxfp8", "modelopt_fp4")
    config: Json = {"quant_method": method, "activation_scheme": "dynamic"}
    if method == "modelopt_fp4":
        config["quant_method"] = "fp8"
        case.options += ["--quantization", case.pick("modelopt_fp4", "nvfp4_online")]
        config["modules_to_not_convert"] = some(case, GLOBS, most=2)
    if case.chance(0.3):
        config["weight_block_size"] = [128, 128]
    case.config["quantization_config"] = config

    def layer(outputs: int, inputs: int) -> Mapping[str, Spec]:
        scales: Spec = ("U8", [outputs, up(inputs, 32)]) if method == "mxfp8" else ("F32", [up(outputs, 128), up(inputs, 128)])
        return {"weight": ("F8_E4M3", [outputs, inputs]), "weight_scale_inv": scales}

    quantize(case, layer, [], _everything)


NAMES: Final = (
    "fp8", "mxfp8", "modelopt", "modelopt_fp8", "modelopt_fp4", "nvfp4_online", "modelopt_mixed", "w8a8_int8", "w8a8_fp8",
    "awq", "awq_marlin", "gptq", "gptq_marlin", "compressed-tensors", "compressed_tensors", "w4afp8", "auto-round",
    "auto-round-int8", "marlin", "moe_wna16", "petit_nvfp4", "quark", "bitsandbytes", "FP8", "Modelopt_FP4", "unknown",
)  # fmt: skip


def asked(case: Case) -> None:
    """--quantization over a dense draft."""
    case.options += ["--quantization", case.pick(*NAMES)]


def overruled(case: Case) -> None:
    """--quantization over a draft that declares another."""
    case.pick(packed_integers, floats, fp8, modelopt_fp8, modelopt_fp4, modelopt_mixed, gptq, awq, auto_round)(case)
    case.options += ["--quantization", case.pick(*NAMES)]


def unknown(case: Case) -> None:
    """Declared methods that the engine lacks, or that are not replayed, and declarations that say nothing."""
    case.config["quantization_config"] = case.pick(
        {}, {"quant_method": "exl3", "bits": 6}, {"quant_method": "bitsandbytes", "load_in_4bit": True}, {"quant_method": ""},
        {"quant_method": "quark"}, {"quant_method": "torchao"}, {"quant_method": "moe_wna16", "bits": 4}, {"quant_method": 5},
        {"quant_method": None}, {"bits": 4}, {"quant_algo": "FP8"}, {"quant_algo": None}, {"quant_algo": "INT4_AWQ"}, [], "fp8",
        {"quant_method": "modelopt"}, {"quant_method": "modelopt", "quant_algo": "W4A8"}, {"quant_method": "mxfp4"},
        {"quant_method": "compressed-tensors"}, {"quant_method": "fp8"}, {"quant_method": "awq"}, {"quant_method": "gptq"},
    )  # fmt: skip
    if case.chance(0.2):
        case.hf_quant_config = {"quantization": case.pick({}, {"quant_algo": "FP8"}, {"quant_algo": "INT8_SQ"}, {"a": 1})}


def dense(case: Case) -> None:
    if case.chance(0.15):
        case.hf_quant_config = case.pick({}, {"quantization": {"quant_algo": None}}, {"producer": {"name": "modelopt"}})
    if case.chance(0.1):
        case.config["quantization_config"] = None


METHODS: Final[Mapping[str, tuple[float, Callable[[Case], None]]]] = {
    "dense": (2, dense),
    "ct-int": (2, packed_integers),
    "ct-asym": (1, asymmetric_integers),
    "ct-order": (1, ordered_integers),
    "ct-int8": (1.5, integers),
    "ct-fp8": (1.5, floats),
    "ct-fp8w": (1, weight_only_floats),
    "ct-nvfp4": (1.5, compressed_fp4),
    "ct-mixed": (1.5, mixed),
    "ct-odd-args": (1, odd_arguments),
    "ct-odd": (1, odd_compressed),
    "fp8": (2, fp8),
    "mo-fp8": (1.5, modelopt_fp8),
    "mo-fp4": (2, modelopt_fp4),
    "mo-mxfp8": (0.4, modelopt_mxfp8),
    "mo-mixed": (1.5, modelopt_mixed),
    "gptq": (2, gptq),
    "awq": (1.5, awq),
    "auto-round": (1.5, auto_round),
    "w8a8": (1.5, eight_bits),
    "exotic": (1, exotic),
    "asked": (1, asked),
    "overruled": (1, overruled),
    "unknown": (0.5, unknown),
}
"""Method -> how often, its quantizer."""


# Faults

DTYPES: Final = (
    "F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2", "F8_E8M0", "I64", "I32", "I16", "I8", "U8", "U16", "U32", "U64", "BOOL",
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
        f"{name}_old", name.replace("_proj", "_projection"), name.replace("layers.", "blocks."), f"encoder.{name}",
        f"model.{name}", name.replace("self_attn", "attn"), name.removesuffix(last) + "weight", name.upper(),
        name.replace("weight_packed", "qweight"), name.replace("weight_scale", "weight_scale_inv"), f"{name}.weight",
        name.replace("q_proj", "qkv_proj"), name.replace("gate_proj", "gate_up_proj"), name.replace("fc.", "encoder.fc."),
        name.replace("layers.0.", "layers.1."), name.replace(".weight", ""), name.replace("weight_scale", "scales"),
    )  # fmt: skip
    case.tensors[new] = case.tensors.pop(name)


def recast(case: Case, name: str) -> None:
    case.tensors[name] = (case.pick(*DTYPES), case.tensors[name][1])


def recast_kind(case: Case, name: str) -> None:
    """Give every tensor of the same own name another dtype."""
    dtype, leaf = case.pick(*DTYPES), name.rpartition(".")[2]
    for other, (_, shape) in case.tensors.items():
        if other.rpartition(".")[2] == leaf:
            case.tensors[other] = (dtype, shape)


def reshape(case: Case, name: str) -> None:
    dtype, shape = case.tensors[name]
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
        "lm_head.weight", "model.lm_head.weight", "embed_tokens.weight", "layers.0.self_attn.rotary_emb.inv_freq", "d2t",
        "layers.0.self_attn.q_proj.bias", "layers.0.self_attn.k_proj.k_scale", "layers.0.self_attn.attn.k_scale",
        "layers.7.mlp.up_proj.weight", "fc.bias", "encoder.fc.weight", "encoder.output_norm_enc.weight", "norm.bias",
        "confidence_head.proj.weight", "markov_head.extra", "prefix_gru.weight_ih_l0", "model.embed_proj.0.weight",
        "layers.0.self_attn.qkv_proj.weight", "layers.0.mlp.gate_up_proj.weight", "lilicorr.extra.weight",
        "layers.0.self_attn.attention_sink_bias", "layers.0.mlp_conv.base_kernel", "rotary_emb.inv_freq",
        f"{module}.weight_scale", f"{module}.input_scale", f"{module}.weight", f"{module}.bias", f"{module}.extra",
        f"{module}.weight_zero_point", f"{module}.g_idx", f"model.{name}", "layers.0.self_attn.v_proj.v_scale",
        "layers.0.self_attn.attn.v_scale", f"{module}.kv_scale", f"{module}.weight_scale_2", f"{module}.{leaf}.{leaf}",
    )  # fmt: skip
    shape = case.pick([16, 16], [], [1], [case.sizes.heads], [case.sizes.hidden], case.tensors[name][1])
    case.tensors[new] = (case.pick("BF16", "F32", "F8_E4M3", "U8"), shape)


def duplicate(case: Case, name: str) -> None:
    """The tensor a second time, under its name below `model.` or above it."""
    other = name.removeprefix("model.") if name.startswith("model.") else f"model.{name}"
    case.tensors[other] = case.tensors[name]


def stored_fused(case: Case, name: str) -> None:
    del name
    fuse(case, *case.pick(("qkv_proj", ("q_proj", "k_proj", "v_proj")), ("gate_up_proj", ("gate_proj", "up_proj"))))


def fuse(case: Case, fused: str, parts: tuple[str, ...]) -> None:
    """Store the parts of a fused module as one, as some exporters do."""
    for name in [name for name in case.tensors if f".{parts[0]}." in name]:
        names = [name.replace(parts[0], part) for part in parts]
        if not all(other in case.tensors for other in names):
            continue
        specs = [case.tensors.pop(other) for other in names]
        case.tensors[name.replace(parts[0], fused)] = (specs[0][0], _joined(name, [shape for _, shape in specs]))


def _joined(name: str, shapes: list[list[int]]) -> list[int]:
    first, leaf = shapes[0], name.rpartition(".")[2]
    axis = 1 if leaf in ("qweight", "qzeros", "scales") else 0
    if len(first) <= axis or leaf.endswith(("g_idx", "weight_shape")):
        return first
    return [*first[:axis], sum(shape[axis] for shape in shapes if len(shape) > axis), *first[axis + 1 :]]


def prefix(case: Case, name: str) -> None:
    del name
    case.rename("", case.pick("model.", "model.", "draft.", "model.model.", "module."))


def change_config(case: Case, name: str) -> None:
    """A key of the config removed, nulled, retyped or renumbered."""
    del name
    inner = case.dflash
    where = inner if inner and case.chance(0.4) else case.config
    key = case.rng.choice([key for key in sorted(where) if key not in ("quantization_config", "architectures")] or ["x"])
    value = where.get(key)
    match case.rng.randrange(4):
        case 0:
            where.pop(key, None)
        case 1:
            where[key] = None
        case 2:
            where[key] = case.pick(str(value), [value], {"value": value}, True, False, 0, -1, 1.5, "x", [], {})
        case _ if isinstance(value, int) and not isinstance(value, bool):
            where[key] = case.pick(value + 1, value * 2, value // 2, max(value - 1, 0), float(value), str(value))
        case _:
            where.pop(key, None)


def add_config(case: Case, name: str) -> None:
    """A key that the draft did not have, in a place where the engine reads one."""
    del name
    where, key, value = case.pick(
        (case.config, "attention_bias", True), (case.config, "use_gemma_norm", True), (case.config, "gating", "per-head"),
        (case.config, "text_config", {}), (case.config, "text_config", {"hidden_size": 64}), (case.config, "hidden_act", "gelu"),
        (case.dflash, "attention_sink_bias", True), (case.dflash, "attention_sink_bias", 1), (case.dflash, "conv_kernel_size", 2),
        (case.dflash, "projector_type", "domino"), (case.dflash, "projector_type", "dspark"), (case.dflash, "selector_rank", 16),
        (case.config, "is_causal", "yes"), (case.config, "quantization_config", {}), (case.config, "markov_rank", 16),
        (case.config, "architectures", []), (case.config, "architectures", ["DFlash2DraftModel", "DFlashDraftModel"]),
        (case.config, "architectures", ["Qwen3DSparkModel"]), (case.config, "architectures", ["LiLiCorrDraftModel"]),
        (case.config, "architectures", ["DFlashLagunaForCausalLM"]), (case.config, "architectures", ["NoSuchModel"]),
        (case.config, "architectures", ["MuseGlimmerAssistantModel"]), (case.config, "rope_parameters", {"rope_dim": "16"}),
        (case.config, "num_key_value_heads", None), (case.config, "head_dim", None), (case.config, "layer_types", "sliding"),
        (case.config, "layer_types", ["chunked_attention"] * 4), (case.config, "dspark_block_size", 4),
        (case.config, "dspark_markov_rank", 16), (case.config, "dspark_target_layer_ids", [1, 2]), (case.dflash, "emb_dim", 8),
        (case.config, "has_embed_tokens", True), (case.config, "dtype", "float32"), (case.config, "torch_dtype", "float16"),
        (case.config, "attention_value_scale", 2.0), (case.dflash, "attention_value_scale", "1"), (case.dflash, "block_size", 1),
    )  # fmt: skip
    where[key] = value


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
}
"""Fault -> how often."""


def make(seed: int, number: int) -> tuple[str, Case]:
    """The case of this seed and number, and its family and method."""
    rng = random.Random(f"{seed} {number}")
    family = rng.choice(sorted(FAMILIES))
    case = FAMILIES[family](rng)
    names = [*METHODS, *["mo-fp4"] * 20] if family == "nemotron" else [*METHODS]
    method = rng.choices(names, [METHODS[name][0] for name in names])[0]
    METHODS[method][1](case)
    for _ in range(rng.choice([0, 0, 0, 1, 1, 1, 2, 3, 4])):
        if case.tensors:
            rng.choices([*FAULTS], [*FAULTS.values()])[0](case, rng.choice(sorted(case.tensors)))
    if case.chance(0.12):
        case.options += ["--tp", case.pick("2", "2", "4")]
    return f"{family}-{method}", case


def write(folder: Path, case: Case) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    files: dict[str, Any] = {"config.json": case.config, "tensors.json": dict(sorted(case.tensors.items()))}
    files |= {"hf_quant_config.json": case.hf_quant_config} if case.hf_quant_config is not None else {}
    files |= {"args.json": case.options} if case.options else {}
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content, separators=(",", ":")) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description="Make random case folders.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for number in range(options.count):
        kind, case = make(options.seed, number)
        write(options.out / f"{kind}-{options.seed:02}{number:05}", case)


if __name__ == "__main__":
    main()
