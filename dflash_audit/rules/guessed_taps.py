"""The config names no target layers, and the engine picks them.

Without `target_layer_ids` SGLang taps as many layers as the draft has, spaced evenly from the second to the
fourth from the end of the target that it serves. vLLM, which reads a few other keys first, taps the three
that the target's class has for EAGLE-3: the second, the one before the middle and the fourth from the end.

## Why it matters

Most drafts were trained on other layers, or on another number of them. With another number the load refuses
`fc`. With the same number nothing fails: the draft reads layers that it was not trained on, and accepts
little. vLLM builds `fc` for as many as the draft has layers all the same, and does not start unless those
are three.

## Example

Before, a draft of five layers for a target of 36: SGLang taps 1, 9, 17, 25 and 33.

    "dflash_config": {"mask_token_id": 151669}

After:

    "dflash_config": {"mask_token_id": 151669, "target_layer_ids": [1, 8, 16, 24, 34]}

## How to fix

Write the layers that the draft was trained on into `dflash_config.target_layer_ids`. They count from 0 and
mean the output of the layer: a list called `eagle_aux_hidden_state_layer_ids` counts one more.
"""

from collections.abc import Iterator

from dflash_audit.diagnosis.sglang_draft import Draft, read_draft, whole, whole_list
from dflash_audit.diagnosis.vllm_features import MOST_PICKED, Features, beside_target, picked, read_features
from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.engines.sglang import dflash_config
from dflash_audit.finding import Finding
from dflash_audit.refusal import Refused
from dflash_audit.sources.checkpoint import Checkpoint


def find(run: EngineRun, checkpoint: Checkpoint, conditions: Conditions) -> Iterator[Finding]:
    """One finding if the config names no layers, with the ids where the target's depth is known.

    Source: SGLang 0.5.23 `srt/speculative/dflash_utils.py`, `build_target_layer_ids`; vLLM 0.33.0
    `model_executor/models/interfaces.py`, `get_eagle3_default_aux_hidden_state_layers`.
    """
    served = read_features(run, checkpoint)
    if served is not None and served.asked is None and served.built_for and not served.joined:
        yield _in_vllm(served, run, checkpoint, conditions)
    draft = read_draft(run, checkpoint)
    if draft is None or draft.either("target_layer_ids") is not None:
        return
    if draft.dspark and draft.config.get("dspark_target_layer_ids") is not None:
        return
    yield Finding(
        rule="guessed-taps",
        severity="warning",
        engine=run.engine,
        subject="target_layer_ids",
        message=(
            f"config.json names no target_layer_ids: {run.engine} picks {_picked(draft, conditions)}"
            f"{_elsewhere(draft)}."
            f" {_width(draft)}"
        ),
        hint=_hint(draft),
        subjects=("target_layer_ids",),
    )


def _in_vllm(features: Features, run: EngineRun, checkpoint: Checkpoint, conditions: Conditions) -> Finding:
    draft, wanted = features.draft, features.built_for
    pair = beside_target(run, checkpoint, conditions)
    depth = (None if pair is None else pair.depth) or whole(draft.either("num_target_layers"))
    ids = None if depth is None or depth <= 0 else [layer - 1 for layer in picked(depth)]
    handed = ids if pair is None or pair.handed_over is None else pair.handed_over
    fits = wanted == MOST_PICKED if handed is None else len(handed) == wanted
    fits = fits or (pair is not None and pair.fits is True)
    told = "the three of the target's class" if ids is None else f"{ids} of the target's {depth}"
    outcome = (
        "A draft that was trained on others reads the wrong features."
        if fits
        else f"It builds fc for {wanted}, as many as the draft has layers, and does not start"
        f"{'' if ids is not None else ' beside a target of more than six layers'}."
    )
    return Finding(
        rule="guessed-taps",
        severity="warning" if fits else "error",
        engine=draft.engine,
        subject="target_layer_ids",
        message=f"config.json names no target_layer_ids: {draft.engine} taps {told}. {outcome}",
        hint=_hint(draft),
        subjects=("target_layer_ids",),
    )


def _picked(draft: Draft, conditions: Conditions) -> str:
    """The layers that it picks: of the target that it serves, whatever the config says of one."""
    depth = _depth(conditions) or whole(draft.either("num_target_layers"))
    try:
        parsed = dflash_config.parse(draft.config)._replace(num_target_layers=depth)
        ids = dflash_config.taps(parsed, draft.layers) if depth else None
    except Refused:
        ids = None
    spaced = f"{draft.layers} of them, spaced evenly over the target that it serves"
    return spaced if ids is None else f"{spaced}, {list(ids)} of {depth}"


def _depth(conditions: Conditions) -> int | None:
    """The depth of the target, None where none is named."""
    if conditions.target is None:
        return None
    # Only here: an audit without a target does without.
    from dflash_audit.diagnosis.with_target import depth

    return depth(conditions.target)


def _elsewhere(draft: Draft) -> str:
    """The keys beside it that other engines read."""
    keys = (
        ("eagle_aux_hidden_state_layer_ids", draft.raw.get("eagle_aux_hidden_state_layer_ids")),
        ("dflash_config.layer_ids", draft.inner.get("layer_ids")),
    )
    return "".join(f", and does not read {key} {value}" for key, value in keys if value is not None)


def _width(draft: Draft) -> str:
    if draft.made_for is None or draft.fc is None:
        return "A draft that was trained on others reads the wrong features."
    shape, made_for = list(draft.fc.shape), draft.made_for
    if made_for != draft.layers:
        return f"fc.weight {shape} was made for {made_for}, so the load refuses it."
    return f"fc.weight {shape} was made for as many, so nothing fails: trained on others, it accepts little."


def _hint(draft: Draft) -> str:
    aux = whole_list(draft.raw.get("eagle_aux_hidden_state_layer_ids"))
    if aux is not None:
        ids = [layer - 1 for layer in aux]
        return f"Set dflash_config.target_layer_ids to {ids}: the ids of the other list count one more."
    return "Set dflash_config.target_layer_ids to the layers that the draft was trained on."
