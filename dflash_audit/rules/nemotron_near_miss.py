"""A Nemotron 3.5 draft is not taken for one, by a single key of its config.

SGLang knows this layout by its config alone: the class, an embedding of its own and no head, NVFP4 weights
(`quant_algo` `W4A16_NVFP4`), two lists of tapped layers of which the second is the first plus one, and
`sample_from_anchor` false. All of it must hold.

## Why it matters

Without a word the draft is built as a plain DFlash draft: its own embedding and its attention sinks are
dropped, `fc` is built dense, and its tokens are taken to start one place later than they do.

## Example

Before, an export that lost the algorithm's name:

    "quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16}

After:

    "quantization_config": {"quant_method": "modelopt", "quant_algo": "W4A16_NVFP4", "group_size": 16}

## How to fix

Restore the key that the finding names. A draft that was exported in another precision (BF16, FP8) cannot be
served by this version as what it is.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from dflash_audit.diagnosis.sglang_draft import is_sglang
from dflash_audit.diagnosis.stored import stored_modules
from dflash_audit.engine_run import EngineRun
from dflash_audit.engines.sglang.dflash_config import is_nemotron_35, nested
from dflash_audit.finding import Finding
from dflash_audit.refusal import Refused
from dflash_audit.sources.checkpoint import Checkpoint

ARCHITECTURES = ("DFlashDraftModel", "Qwen3DSparkModel")
ALGORITHM = "W4A16_NVFP4"


def find(run: EngineRun, checkpoint: Checkpoint) -> Iterator[Finding]:
    """One finding if all but one of the conditions hold, and the draft has an embedding of its own.

    Source: SGLang 0.5.23 `srt/speculative/dflash_utils.py`, `is_nemotron_35_draft_config`.
    """
    if not is_sglang(run) or run.config is None or _recognised(run.config):
        return
    missed = [(key, wanted) for key, wanted, holds in _conditions(run.config) if not holds]
    if len(missed) != 1 or "embed_tokens" not in stored_modules(checkpoint.tensors):
        return
    ((key, wanted),) = missed
    yield Finding(
        rule="nemotron-near-miss",
        severity="error",
        engine=run.engine,
        subject=key,
        message=(
            f"In all but {key} this is a Nemotron 3.5 draft, so {run.engine} does not take it for one: it"
            " drops the draft's own embedding and any sinks, and places its tokens as a plain draft's."
        ),
        hint=f"Set {key} to {wanted}.",
        subjects=(key,),
    )


def _recognised(config: Mapping[str, Any]) -> bool:
    """Whether the engine takes it for one, or stops as it looks."""
    try:
        return is_nemotron_35(config)
    except Refused:
        return True


def _conditions(config: Mapping[str, Any]) -> Iterator[tuple[str, str, bool]]:
    """(key, the value wanted, whether it holds) of each condition."""
    inner = nested(config)
    quantization = config.get("quantization_config")
    algorithm = quantization.get("quant_algo") if isinstance(quantization, Mapping) else None
    ids = inner.get("target_layer_ids", config.get("target_layer_ids"))
    anchor = inner.get("sample_from_anchor", config.get("sample_from_anchor", True))
    named = config.get("architectures")
    known = isinstance(named, list) and any(name in named for name in ARCHITECTURES)
    yield "architectures", " or ".join(ARCHITECTURES), known
    yield "has_embed_tokens", "true", bool(config.get("has_embed_tokens", False))
    yield "has_lm_head", "false", not config.get("has_lm_head", False)
    yield "quantization_config.quant_algo", ALGORITHM, algorithm == ALGORITHM
    yield "sample_from_anchor", "false", anchor is False
    aux = config.get("eagle_aux_hidden_state_layer_ids")
    wanted = _shifted(ids)
    yield (
        "eagle_aux_hidden_state_layer_ids",
        str(wanted or "the target_layer_ids, each plus one"),
        wanted is not None and aux == wanted,
    )


def _shifted(ids: Any) -> list[int] | None:
    """The second list that goes with `target_layer_ids`."""
    if not isinstance(ids, list) or not ids or not all(isinstance(layer, int) for layer in ids):
        return None
    return [layer + 1 for layer in ids]
