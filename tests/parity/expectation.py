"""What a report must say, worked out from an engine's record alone."""

import re
from collections.abc import Iterator
from typing import Any

from parity.case import Record

BEFORE_LOAD = ("config", "class", "quant_config", "build")
SHARDS = {"qkv_proj": ("q", "k", "v"), "gate_up_proj": ("0", "1")}
FUSED = {"q_proj": "qkv_proj", "k_proj": "qkv_proj", "v_proj": "qkv_proj"} | {
    "gate_proj": "gate_up_proj",
    "up_proj": "gate_up_proj",
}
DENSE = ("float16", "bfloat16", "float32", "float64")
AFTER_THE_LOAD = frozenset(("kernel-limit", "nemotron-near-miss", "nvfp4-on-marlin", "old-card", "tap-order"))
"""Rules that err on what shows only after the load, where a record ends."""

OVER_RANKS = frozenset(("resized-parameter",))
"""Rules that err on what shows only over all ranks, where a record knows one."""

UNUSED_SCALES = (".k_scale", ".v_scale", ".kv_scale", ".input_scale", ".output_scale")
ROTARY_CACHES = (".inv_freq", ".cos_cached", ".sin_cached")


def modules(record: Record) -> set[str]:
    """Every module that holds a parameter, and every module above one."""
    found = set()
    for parameter in record["parameters"]:
        parts = parameter["name"].split(".")[:-1]
        found |= {".".join(parts[:length]) for length in range(1, len(parts) + 1)}
    return found


def excused(record: Record, name: str) -> bool:
    """Whether the contract lets a tensor go nowhere."""
    plain = name.removeprefix("model.")
    if name.endswith(ROTARY_CACHES) or plain.startswith(("lm_head.", "embed_tokens.")):
        return True
    if name.startswith("confidence_head."):
        return "DSpark" in record["class"]
    head, _, last = plain.rpartition(".")[0].rpartition(".")
    owners = {f"{head}.{last}".strip("."), f"{head}.{FUSED.get(last, last)}".strip(".")}
    return name.endswith(UNUSED_SCALES) and bool(owners & modules(record))


def lossy(cast: dict[str, str]) -> bool:
    """Whether a recorded cast turns quantized numbers into dense ones or the reverse."""
    scale = "scale" in cast["parameter"].rpartition(".")[2]
    return not scale and (cast["from"] in DENSE) != (cast["to"] in DENSE)


def odd_sizes(record: Record) -> Iterator[str]:
    """Parameters that took in another amount than they hold, none of them by design.

    With several ranks a record holds whole tensors against one rank's part, which tells nothing.
    """
    if record.get("tp", 1) > 1:
        return
    unfilled = {re.sub(r"\[.*", "", name) for name in record["unfilled"]}
    classes = {parameter["name"]: parameter["module_class"] for parameter in record["parameters"]}
    for entry in record["wrong_size"]:
        name, holds, took = entry["parameter"], entry["holds"], entry["took"]
        scale_of_all_shards = took == 1 and holds in (2, 3) and "scale" in name
        padded = classes[name] == "VocabParallelEmbedding"
        if name not in unfilled and not (scale_of_all_shards or padded or name.endswith("g_idx")):
            yield name


def fails(record: Record) -> bool:
    """Whether the verdict on this engine must be fail."""
    if record["stage"]:
        return True
    lost = [name for name in record["dropped"] if not excused(record, name)]
    return bool(lost or record["unfilled"] or any(map(lossy, record["casts"])) or [*odd_sizes(record)])


def unfilled(entry: dict[str, Any]) -> set[str]:
    """The names, a shard each for a fused parameter, that a report's parameter says are missing."""
    name, missing = entry["name"], entry["missing"]
    module = name.rpartition(".")[0].rpartition(".")[2]
    if missing == ["all"]:
        return {f"{name}[{shard}]" for shard in SHARDS[module]} if module in SHARDS else {name}
    return {f"{name}[{shard}]" for shard in missing}
