"""The draft's context is shorter than the target's.

SGLang builds the draft for the target's context, for it runs at the target's positions. What the draft's
config allows is its `max_position_embeddings`, which many classes take for a small number where the key is
missing.

## Why it matters

The server does not start, unless it is given a shorter `--context-length` or told by
`SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1` to go on: the draft then drafts at positions that it was not
trained at.

## Example

Before, beside a target of 262144:

    "max_position_embeddings": 40960

After, for a draft that was trained so far:

    "max_position_embeddings": 262144

## How to fix

If the draft was trained for the longer context, or its sliding window makes no difference, write the
target's length into its config. Else serve with `--context-length`.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dflash_audit.diagnosis.sglang_draft import whole
from dflash_audit.diagnosis.with_target import read_pair
from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.finding import Finding
from dflash_audit.sources.checkpoint import Checkpoint

KEYS: Final = (
    "max_sequence_length",
    "seq_length",
    "max_seq_len",
    "model_max_length",
    "max_position_embeddings",
)
"""Source: SGLang 0.5.23 `srt/utils/hf_transformers/common.py`, `CONTEXT_LENGTH_KEYS`."""

STRETCHED: Final = ("llama3", "yarn", "longrope")
"""Types whose config tells the length after stretching; their class fills in the one before where it lacks.

Source: transformers 5.19.0 `modeling_rope_utils.py`, `standardize_rope_params`.
"""

MOST: Final = 2**40
"""What is not below it is no context's length, nor a factor of one."""

VARIABLE: Final = "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1"


def find(run: EngineRun, checkpoint: Checkpoint, conditions: Conditions) -> Iterator[Finding]:
    """One finding if it is shorter.

    Source: SGLang 0.5.23 `srt/configs/model_config.py`, `_derive_context_length`;
    `srt/speculative/draft_worker_common.py`, `build_draft_tp_worker`.
    """
    pair = read_pair(run, checkpoint, conditions)
    if pair is None:
        return
    own, theirs = context_length(pair.draft.config), context_length(pair.target.text)
    if own is None or theirs is None or own >= theirs:
        return
    given = "" if pair.draft.given("max_position_embeddings") else ", the default of its class"
    yield Finding(
        rule="target-context",
        severity="warning",
        engine=run.engine,
        subject="max_position_embeddings",
        message=(
            f"The draft's context is {own}{given}, and the target's {theirs}: {run.engine} builds the draft"
            f" for the target's, and does not start without --context-length {own}."
        ),
        hint=(
            f"Set max_position_embeddings to {theirs} if the draft was trained so far; else serve with"
            f" --context-length {own}, or with {VARIABLE} to draft beyond it all the same."
        ),
        subjects=("max_position_embeddings",),
    )


def context_length(config: Mapping[str, Any]) -> int | None:
    """The tokens of a context, None where no key says it (`get_context_length`)."""
    scaling = config.get("rope_scaling") or config.get("rope_parameters")
    factor: Any = 1
    if isinstance(scaling, Mapping):
        kind = scaling.get("rope_type", scaling.get("type"))
        stretched = "original_max_position_embeddings" in scaling or kind in STRETCHED
        factor = 1 if stretched else scaling.get("factor", 1)
    for key in KEYS:
        if config.get(key) is not None:
            length = whole(config[key])
            if length is None or not 0 < length < MOST or not isinstance(factor, int | float):
                return None
            return int(factor * length) if 0 < factor < MOST else None
    return None
