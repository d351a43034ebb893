"""`fc` was made for another number of tapped target layers than the config names.

The columns of `fc.weight` divided by `hidden_size` are the layers of the target whose features it takes.

## Why it matters

The engine builds `fc` for as many layers as `target_layer_ids` names, and refuses a tensor of another
width.

## Example

Before: `fc.weight` is [128, 512], for four layers of 128.

    "target_layer_ids": [1, 4, 7]

After:

    "target_layer_ids": [1, 4, 7, 10]

## How to fix

Write the ids that the draft was trained on, all of them and in that order. They count the target's layers
from 0, and mean the output of the layer.
"""

from collections.abc import Iterator

from dflash_audit.diagnosis.sglang_draft import read_draft
from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding
from dflash_audit.sources.checkpoint import Checkpoint


def find(run: EngineRun, checkpoint: Checkpoint) -> Iterator[Finding]:
    """One finding if the ids are not as many as `fc` was made for."""
    draft = read_draft(run, checkpoint)
    if draft is None or draft.taps is None or draft.made_for is None or draft.fc is None:
        return
    named, made_for = len(draft.taps), draft.made_for
    if named == made_for:
        return
    s = "" if made_for == 1 else "s"
    yield Finding(
        rule="tap-count",
        severity="warning",
        engine=run.engine,
        subject="target_layer_ids",
        message=(
            f"fc.weight {list(draft.fc.shape)} was made for {made_for} tapped target layer{s}, and"
            f" target_layer_ids names {named}: {draft.taps}. {run.engine} builds fc for those, and refuses"
            " the tensor."
        ),
        hint=f"Name the {made_for} layer{s} that the draft was trained on in dflash_config.target_layer_ids.",
        subjects=("target_layer_ids",),
    )
