"""What a report must say, worked out from an engine's record alone."""

import re
from collections.abc import Collection, Iterator
from typing import Any

from parity.case import Record

BEFORE_LOAD = ("config", "class", "quant_config", "build")
SHARDS = {"qkv_proj": ("q", "k", "v"), "gate_up_proj": ("0", "1")}
FUSED = {"q_proj": "qkv_proj", "k_proj": "qkv_proj", "v_proj": "qkv_proj"} | {
    "gate_proj": "gate_up_proj",
    "up_proj": "gate_up_proj",
}
DENSE = ("float16", "bfloat16", "float32", "float64")
AFTER_THE_LOAD = frozenset(
    (
        "absent-head",
        "broken-number",
        "guessed-taps",
        "head-groups",
        "kernel-limit",
        "mask-token",
        "nemotron-near-miss",
        "nvfp4-on-marlin",
        "old-card",
        "reduced-vocabulary",
        "refused-start",
        "tap-count",
        "tap-order",
    )
)
"""Rules that err on what shows only after the load, where a record ends."""

OVER_RANKS = frozenset(("resized-parameter",))
"""Rules that err on what shows only over all ranks, where a record knows one."""

BESIDE_A_TARGET = frozenset(
    ("target-class", "target-head", "target-hidden-size", "target-layers", "target-vocabulary")
)
"""Rules that err on what shows only when the target runs, of which a record has no more than the sizes."""

UNUSED_SCALES = (".k_scale", ".v_scale", ".kv_scale", ".input_scale", ".output_scale")
CACHE_SCALES = (".q_scale", ".k_scale", ".v_scale", ".q_zero_point", ".k_zero_point", ".v_zero_point")
ROTARY_CACHES = (".inv_freq", ".cos_cached", ".sin_cached")


def modules(record: Record) -> set[str]:
    """Every module that holds a parameter, every module above one, and each attention's `attn`; no `model.`.

    That one holds none without a KV cache scheme, and a record names modules by their parameters. Source:
    SGLang 0.5.23 `srt/models/dflash.py`, where each `DFlashAttention` makes a `RadixAttention`.
    """
    found = set()
    for parameter in record["parameters"]:
        parts = parameter["name"].removeprefix("model.").split(".")[:-1]
        found |= {".".join(parts[:length]) for length in range(1, len(parts) + 1)}
    return found | {f"{name}.attn" for name in found if name.endswith(".self_attn")}


def of_vllm(record: Record) -> bool:
    """Whether a record is vLLM's, whose drafts hold their parameters below `model.`."""
    return any(parameter["name"].startswith("model.") for parameter in record.get("parameters", ()))


def excused(record: Record, name: str) -> bool:
    """Whether the contract lets a tensor go nowhere."""
    plain = name.removeprefix("model.")
    if name.endswith(ROTARY_CACHES):
        return True
    if of_vllm(record):
        if "t2d" in name or name.endswith((".g_idx", *CACHE_SCALES)) or name.startswith("confidence_head."):
            return True
    elif plain.startswith(("lm_head.", "embed_tokens.")):
        return True
    elif name.startswith("confidence_head."):
        return "DSpark" in record["class"]
    head, _, last = plain.rpartition(".")[0].rpartition(".")
    owners = {f"{head}.{last}".strip("."), f"{head}.{FUSED.get(last, last)}".strip(".")}
    return name.endswith(UNUSED_SCALES) and bool(owners & modules(record))


def lossy(cast: dict[str, str]) -> bool:
    """Whether a recorded cast turns quantized numbers into dense ones or the reverse."""
    scale = "scale" in cast["parameter"].rpartition(".")[2]
    return not scale and (cast["from"] in DENSE) != (cast["to"] in DENSE)


def odd_sizes(record: Record, held_twice: Collection[str] = ()) -> Iterator[str]:
    """Parameters that took in another amount than they hold, none of them by design.

    With several ranks a record holds whole tensors against one rank's part, which tells nothing,
    and a tensor that lies in two files comes twice.
    """
    if record.get("tp", 1) > 1:
        return
    twice = {re.sub(r"\[.*", "", target) for name in held_twice for target in record["loaded"].get(name, ())}
    unfilled = {re.sub(r"\[.*", "", name) for name in record["unfilled"]}
    classes = {parameter["name"]: parameter["module_class"] for parameter in record["parameters"]}
    for entry in record["wrong_size"]:
        name, holds, took = entry["parameter"], entry["holds"], entry["took"]
        scale_of_all_shards = took == 1 and holds in (2, 3) and "scale" in name
        padded = took < holds and classes[name] in ("VocabParallelEmbedding", "ParallelLMHead")
        if name not in unfilled | twice and not (scale_of_all_shards or padded or name.endswith("g_idx")):
            yield name


def half_filled(record: Record) -> Iterator[str]:
    """Fused parameters of which one number came, for the first matrix, and the others are read too.

    SGLang 0.5.23 `ModelOptNvFp4A16LinearMethod` in `modelopt_quant.py` makes `weight_scale_2` of memory that
    nobody set, and takes the greatest. `adjust_scalar_to_fused_array` in `layers/linear.py` puts the scale of
    a fused tensor into its first number; the loaders of other methods put it into all.
    """
    schemes = {parameter["name"]: parameter["scheme"] for parameter in record["parameters"]}
    for entry in record["wrong_size"]:
        name = entry["parameter"]
        alone = schemes[name] == "ModelOptNvFp4A16LinearMethod" and name.endswith(".weight_scale_2")
        if alone and entry["took"] == 1 < entry["holds"]:
            yield name


def unread(record: Record) -> set[str]:
    """What vLLM registers for checkpoints that hold it, and takes away unread where nothing fills it.

    Source: vLLM 0.33.0 `layers/quantization/kv_cache.py` (`prob_scale`) and `modelopt.py` (`_DropInputScale`,
    whose scale alone is in the model's dtype).
    """
    return {
        parameter["name"]
        for parameter in record["parameters"]
        if parameter["name"].endswith(".attn.prob_scale")
        or (parameter["name"].endswith(".input_scale") and parameter["dtype"] == "bfloat16")
    }


def shards_of(name: str, record: Record) -> set[str]:
    """A parameter, or `parameter[shard]`, as a record names it: a whole fused one by its shards."""
    module = name.rpartition(".")[0].rpartition(".")[2]
    return (
        {f"{name}[{shard}]" for shard in SHARDS[module]} if module in SHARDS and "[" not in name else {name}
    )


def fails(record: Record, held_twice: Collection[str] = ()) -> bool:
    """Whether the verdict on this engine must be fail; `held_twice` are tensors that lie in two files."""
    if record["stage"]:
        return True
    lost = [name for name in record["dropped"] if not excused(record, name)]
    partly = [*odd_sizes(record, held_twice), *half_filled(record)]
    holes = {re.sub(r"\[.*", "", name) for name in record["unfilled"]} - unread(record)
    return bool(lost or holes or any(map(lossy, record["casts"])) or partly)


def unfilled(entry: dict[str, Any]) -> set[str]:
    """The names, a shard each for a fused parameter, that a report's parameter says are missing."""
    name, missing = entry["name"], entry["missing"]
    module = name.rpartition(".")[0].rpartition(".")[2]
    if missing == ["all"]:
        return {f"{name}[{shard}]" for shard in SHARDS[module]} if module in SHARDS else {name}
    return {f"{name}[{shard}]" for shard in missing}
