"""The tapped target layers are named twice, or out of order.

A target hands its features over while it runs, each layer once and in ascending order, whatever order the
draft's `target_layer_ids` has.

## Why it matters

A layer that is named twice comes once: `fc` gets fewer features than it was built for, and the server fails
as it starts or at its first request, whatever the target. Ids out of order feed the right features to the
wrong columns of `fc`: with most targets nothing fails, and the draft accepts little; some refuse them. That
is a warning.

## Example

Before:

    "target_layer_ids": [10, 7, 4, 1]

After, if the draft was trained on features in ascending order:

    "target_layer_ids": [1, 4, 7, 10]

## How to fix

Name each layer once, in ascending order. A draft that was trained on another order needs the blocks of
columns of `fc.weight` put into ascending order too.
"""

from collections import Counter
from collections.abc import Iterator

from dflash_audit.diagnosis.sglang_draft import Draft, read_draft
from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.finding import Finding, Severity
from dflash_audit.sources.checkpoint import Checkpoint


def find(run: EngineRun, checkpoint: Checkpoint, conditions: Conditions) -> Iterator[Finding]:
    """One finding for ids that repeat, one for ids out of order; a single one for ids that
    the class of a named target refuses.

    Source: SGLang 0.5.23, every file of `srt/models/` with a `set_dflash_layers_to_capture` or a
    `set_dspark_layers_to_capture`: each layer is asked once whether it is among the ids, or they must be
    unique and sorted (`beam.py`, `inkling.py`, `minimax_m3_vl.py`, `qwen3_5_text.py`). Fewer features are
    refused by `AuxHiddenStatePacker.finalize` or by the draft's `project_target_hidden`.
    """
    draft = read_draft(run, checkpoint)
    key, ids = ("", None) if draft is None else draft.captured
    if draft is None or ids is None:
        return
    if ids != sorted(set(ids)) and (name := _refusing(run, checkpoint, conditions)) is not None:
        yield _finding(
            draft,
            "error",
            key,
            f"is {ids}, and the target's class {name} takes ids in ascending order alone, each once:"
            f" {draft.engine} does not start",
            "Name each layer once, in ascending order, the ones that the draft was trained on.",
        )
        return
    repeated = sorted(layer for layer, times in Counter(ids).items() if times > 1)
    built_for = len(draft.taps) if draft.taps else draft.layers
    if repeated and len(set(ids)) != built_for:
        yield _finding(
            draft,
            "error",
            key,
            f"names layer {', '.join(map(str, repeated))} more than once: a target hands over each layer"
            f" once, so fc gets {len(set(ids))} features of {built_for}, and the server fails as it starts or"
            " at its first request",
            "Name each layer once, the ones that the draft was trained on.",
        )
    if ids != sorted(ids):
        yield _finding(
            draft,
            "warning",
            key,
            f"is {ids}, out of order: a target hands its layers over in ascending order, so the columns of"
            f" fc that were made for layer {ids[0]} get those of layer {min(ids)}",
            "Name the layers in ascending order; if the draft was trained on the order given, put the blocks"
            " of columns of fc.weight into ascending order too.",
        )


def _refusing(run: EngineRun, checkpoint: Checkpoint, conditions: Conditions) -> str | None:
    """The class of a named target that refuses such ids; None without one."""
    if conditions.target is None:
        return None
    # Only here: an audit without a target does without.
    from dflash_audit.diagnosis.with_target import read_pair, refuses_order

    pair = read_pair(run, checkpoint, conditions)
    return None if pair is None else refuses_order(pair, run)


def _finding(draft: Draft, severity: Severity, key: str, fact: str, hint: str) -> Finding:
    return Finding("tap-order", severity, draft.engine, key, f"{key} {fact}.", hint, (key,))
