"""The two lists of tapped target layers tell of different layers.

`target_layer_ids` names layers whose output is tapped, `eagle_aux_hidden_state_layer_ids` the same taps by
the layer that comes next: each id one more.

## Why it matters

SGLang reads the first list (the second only to know a Nemotron 3.5 draft), vLLM the second. Where they
disagree, one of the engines feeds the draft with layers that it was not trained on, without an error.

## Example

Before:

    "eagle_aux_hidden_state_layer_ids": [1, 4, 7, 10],
    "dflash_config": {"target_layer_ids": [1, 4, 7, 10]}

After:

    "eagle_aux_hidden_state_layer_ids": [2, 5, 8, 11],
    "dflash_config": {"target_layer_ids": [1, 4, 7, 10]}

## How to fix

Correct the list that is wrong. If `target_layer_ids` is right, write each of its ids plus one into the
other, or leave the other out.
"""

from collections.abc import Iterator

from dflash_audit.diagnosis.sglang_draft import read_draft, whole_list
from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding
from dflash_audit.sources.checkpoint import Checkpoint

KEY = "eagle_aux_hidden_state_layer_ids"


def find(run: EngineRun, checkpoint: Checkpoint) -> Iterator[Finding]:
    """One finding if both lists are given and the second is not the first plus one."""
    draft = read_draft(run, checkpoint)
    if draft is None or draft.taps is None:
        return
    aux, meant = draft.raw.get(KEY), [layer + 1 for layer in draft.taps]
    if aux is None or whole_list(aux) == meant:
        return
    yield Finding(
        rule="aux-layer-ids",
        severity="warning",
        engine=run.engine,
        subject=KEY,
        message=(
            f"{KEY} is {aux}, and target_layer_ids {draft.taps} calls for {meant}: {run.engine} reads"
            " target_layer_ids, other engines the other list, and one of them is wrong."
        ),
        hint=f"If target_layer_ids is right, set {KEY} to {meant} or leave it out; else correct both.",
        subjects=(KEY,),
    )
