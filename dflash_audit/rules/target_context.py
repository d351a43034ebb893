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

from collections.abc import Iterator
from typing import Final

from dflash_audit.diagnosis.with_target import read_pair
from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.engines.sglang.two_models import too_short
from dflash_audit.finding import Finding
from dflash_audit.sources.checkpoint import Checkpoint

VARIABLE: Final = "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1"


def find(run: EngineRun, checkpoint: Checkpoint, conditions: Conditions) -> Iterator[Finding]:
    """One finding if it is shorter.

    Source: SGLang 0.5.23 `srt/configs/model_config.py`, `_derive_context_length`; see `two_models`.
    """
    pair = read_pair(run, checkpoint, conditions)
    lengths = None if pair is None else too_short(pair.draft.config, pair.target)
    if pair is None or lengths is None:
        return
    own, theirs = lengths
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
