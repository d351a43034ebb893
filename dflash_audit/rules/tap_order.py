"""The tapped target layers are named twice, or out of order.

A target hands its features over while it runs, each layer once and in ascending order, whatever order the
draft's `target_layer_ids` has.

## Why it matters

A layer that is named twice comes once: `fc` gets fewer features than it was built for, and the server fails
as it starts or at its first request, whatever the target; vLLM as it starts. Ids out of order feed the right
features to the wrong columns of `fc`: with most targets nothing fails, and the draft accepts little; some of
SGLang's refuse them. That is a warning.

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
from dflash_audit.diagnosis.vllm_features import Features, beside_target, read_features
from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.finding import Finding, Severity
from dflash_audit.how_many import how_many
from dflash_audit.sources.checkpoint import Checkpoint


def find(run: EngineRun, checkpoint: Checkpoint, conditions: Conditions) -> Iterator[Finding]:
    """One finding for ids that repeat, one for ids out of order; a single one for ids that
    the class of a named target refuses.

    Source: SGLang 0.5.23, every file of `srt/models/` with a `set_dflash_layers_to_capture` or a
    `set_dspark_layers_to_capture`: each layer is asked once whether it is among the ids, or they must be
    unique and sorted (`beam.py`, `inkling.py`, `minimax_m3_vl.py`, `qwen3_5_text.py`). Fewer features are
    refused by `AuxHiddenStatePacker.finalize` or by the draft's `project_target_hidden`. vLLM 0.33.0, see
    `vllm_features` and `engines/vllm/target_classes.py`.
    """
    served = read_features(run, checkpoint)
    if served is not None and not _kept_in_order(run, checkpoint, conditions):
        yield from _in_vllm(served)
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
        features = f"{how_many(len(set(ids)), 'feature')} of {built_for}"
        yield _named_twice(
            draft, key, repeated, features, "the server fails as it starts or at its first request"
        )
    if ids != sorted(ids):
        yield _unsorted(draft, key, ids)


def _in_vllm(features: Features) -> Iterator[Finding]:
    draft, key, named = features.draft, features.key, features.named
    if key is None or named is None or features.joined:
        return
    if features.repeated and features.distinct != features.built_for:
        counts = f"{how_many(features.distinct or 0, 'feature')} of {features.built_for}"
        yield _named_twice(draft, key, features.repeated, counts, f"{draft.engine} does not start")
    if list(named) != sorted(named):
        yield _unsorted(draft, key, list(named))


def _kept_in_order(run: EngineRun, checkpoint: Checkpoint, conditions: Conditions) -> bool:
    """Whether a target is named whose class may hand its layers over in another order."""
    pair = beside_target(run, checkpoint, conditions)
    return pair is not None and pair.architecture is None


def _named_twice(draft: Draft, key: str, repeated: list[int], features: str, outcome: str) -> Finding:
    return _finding(
        draft,
        "error",
        key,
        f"names layer {', '.join(map(str, repeated))} more than once: a target hands over each layer once,"
        f" so fc gets {features}, and {outcome}",
        "Name each layer once, the ones that the draft was trained on.",
    )


def _unsorted(draft: Draft, key: str, ids: list[int]) -> Finding:
    return _finding(
        draft,
        "warning",
        key,
        f"is {ids}, out of order: a target hands its layers over in ascending order, so the columns of fc"
        f" that were made for layer {ids[0]} get those of layer {min(ids)}",
        "Name the layers in ascending order; if the draft was trained on the order given, put the blocks of"
        " columns of fc.weight into ascending order too.",
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
