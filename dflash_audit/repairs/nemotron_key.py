"""The one key that keeps a Nemotron 3.5 draft from being taken for one."""

from collections.abc import Iterator, Mapping
from typing import Any

from dflash_audit.diagnosis.nemotron import ALGORITHM, near_miss
from dflash_audit.diagnosis.sglang_draft import is_sglang, whole_list
from dflash_audit.diagnosis.stored import stored_modules
from dflash_audit.facts import Facts
from dflash_audit.repairs.edit import Proposal, edit

AUX = "eagle_aux_hidden_state_layer_ids"


def propose(facts: Facts) -> Iterator[Proposal]:
    """The key with the value that this layout has; only for a draft with an embedding of its own."""
    modules = stored_modules(facts.checkpoint.tensors)
    if "embed_tokens" not in modules:
        return
    for run in facts.runs:
        missed = near_miss(run.config) if is_sglang(run) and run.config is not None else None
        if missed is None:
            continue
        raw = facts.checkpoint.config
        told = _value(missed[0], raw, any(name.startswith("markov_head") for name in modules))
        why = f"In all but {missed[0]} this is a Nemotron 3.5 draft, which the engine knows by it."
        found = edit(raw, *told, why) if told else None
        yield (found,) if found else ()
        return


def _value(key: str, raw: Mapping[str, Any], markov: bool) -> tuple[tuple[str, ...], Any] | None:
    """Where the key stands, and what it must be."""
    inner = raw.get("dflash_config")
    nested: Mapping[str, Any] = inner if isinstance(inner, Mapping) else {}
    if key == "sample_from_anchor":
        return (("dflash_config", key) if key in nested else (key,)), False
    if key == AUX:
        ids = whole_list(nested.get("target_layer_ids", raw.get("target_layer_ids")))
        return ((AUX,), [layer + 1 for layer in ids]) if ids else None
    values: Mapping[str, tuple[tuple[str, ...], Any]] = {
        "architectures": (("architectures",), ["Qwen3DSparkModel" if markov else "DFlashDraftModel"]),
        "has_embed_tokens": (("has_embed_tokens",), True),
        "has_lm_head": (("has_lm_head",), False),
        "quantization_config.quant_algo": (("quantization_config", "quant_algo"), ALGORITHM),
    }
    return values[key]
