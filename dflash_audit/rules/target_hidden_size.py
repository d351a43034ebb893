"""The target's hidden states are of another width than the draft takes.

A target hands over one vector of its own `hidden_size` for each tapped layer, and its embedding and its head
are of that width. SGLang builds `fc` for the draft's `hidden_size` times the tapped layers, and reads no
`target_hidden_size`.

## Why it matters

The server fails, and not before it has loaded both models: as it captures its graphs, or at its first
request, with a message about the features of the target.

## Example

Before: a draft of 4096 that was trained for another model, beside a target of 5120.

    "hidden_size": 4096

After: the draft of this target.

    "hidden_size": 5120

## How to fix

Serve the draft with the model that it was trained for. A draft narrower than its target on purpose
(`target_hidden_size`) needs an engine that reads that key.
"""

from collections.abc import Iterator

from dflash_audit.diagnosis.sglang_draft import whole
from dflash_audit.diagnosis.with_target import Pair, read_pair
from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.finding import Finding
from dflash_audit.sources.checkpoint import Checkpoint


def find(run: EngineRun, checkpoint: Checkpoint, conditions: Conditions) -> Iterator[Finding]:
    """One finding if the widths differ.

    Source: SGLang 0.5.23 `srt/models/dflash.py`, `project_target_hidden`, and the `fc` of `DFlashDraftModel`.
    Public record: SpecForge#560.
    """
    pair = read_pair(run, checkpoint, conditions)
    if pair is None or None in (pair.hidden, pair.target.hidden_size):
        return
    if pair.hidden == pair.target.hidden_size:
        return
    yield Finding(
        rule="target-hidden-size",
        severity="error",
        engine=run.engine,
        subject="hidden_size",
        message=(
            f"hidden_size is {pair.hidden}, and that of the target {pair.target.hidden_size}:"
            f" {run.engine} builds fc for features as wide as the draft, and fails at its first request"
            f" if not before{_unread(pair)}."
        ),
        hint="Serve the draft with the model that it was trained for.",
        subjects=("hidden_size",),
    )


def _unread(pair: Pair) -> str:
    made_for = whole(pair.draft.raw.get("target_hidden_size"))
    if made_for is None:
        return ""
    return f"; target_hidden_size {made_for}, which other engines honour, it does not read"
