"""`fc` was made for another number of tapped target layers than the config names.

The columns of `fc.weight` divided by `hidden_size` are the layers of the target whose features it takes.

## Why it matters

The engine builds `fc` for as many layers as `target_layer_ids` names, and refuses a tensor of another
width. vLLM reads other keys too, and for two kinds of drafts (Laguna and the beam variant of DFlash2) builds
`fc` by `dflash_config.target_layer_ids` and asks the target by `eagle_aux_hidden_state_layer_ids`: where one
names more layers than the other, it does not start.

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

from dflash_audit.diagnosis.sglang_draft import Draft, read_draft
from dflash_audit.diagnosis.vllm_features import Features, read_features
from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding
from dflash_audit.sources.checkpoint import Checkpoint, Tensor


def find(run: EngineRun, checkpoint: Checkpoint) -> Iterator[Finding]:
    """One finding if the ids are not as many as `fc` was made for.

    Source for vLLM: see `vllm_features`.
    """
    served = read_features(run, checkpoint)
    if served is not None:
        yield from _in_vllm(served)
    draft = read_draft(run, checkpoint)
    if draft is None or draft.taps is None or draft.made_for is None or draft.fc is None:
        return
    named, made_for = len(draft.taps), draft.made_for
    if named == made_for:
        return
    where = "dflash_config.target_layer_ids"
    yield _made_for_others(draft, draft.fc, made_for, "target_layer_ids", draft.taps, where)


def _in_vllm(features: Features) -> Iterator[Finding]:
    draft, key, named = features.draft, features.key, features.named
    fc, width = draft.fc, features.width
    if key is None or named is None or features.joined:
        return
    if len(named) != features.built_for and not features.repeated:
        built = f"builds fc for the {features.built_for} that {features.built_by} names"
        yield Finding(
            rule="tap-count",
            severity="error",
            engine=draft.engine,
            subject=key,
            message=f"{key} names {len(named)} layers, and {draft.engine} {built}: it does not start.",
            hint=f"Name the same layers in both, or leave {key} out.",
            subjects=(key,),
        )
    elif fc is not None and width and not fc.shape[1] % width and fc.shape[1] // width != features.built_for:
        yield _made_for_others(draft, fc, fc.shape[1] // width, key, list(named), key)


def _made_for_others(
    draft: Draft, fc: Tensor, made_for: int, key: str, ids: list[int], where: str
) -> Finding:
    s = "" if made_for == 1 else "s"
    return Finding(
        rule="tap-count",
        severity="warning",
        engine=draft.engine,
        subject=key,
        message=(
            f"fc.weight {list(fc.shape)} was made for {made_for} tapped target layer{s}, and {key} names"
            f" {len(ids)}: {ids}. {draft.engine} builds fc for those, and refuses the tensor."
        ),
        hint=f"Name the {made_for} layer{s} that the draft was trained on in {where}.",
        subjects=(key,),
    )
