"""The draft taps layers that the target does not have or does not hand over.

`target_layer_ids` count the target's layers from 0 and mean the output of the layer, so the last one is
`num_hidden_layers` - 1. That one is special: most of SGLang's classes hand over what goes *into* the layer
after the tapped one, and some have no such place after their last.

## Why it matters

For an id beyond the last layer SGLang does not start. The last layer's own output stops some classes as
they start, and others hand over one feature too few, which fails the first request. A draft whose
`num_target_layers` is not the target's was trained for another model, and SGLang says so in a line of its
log alone.

## Example

Before, for a target of 36 layers:

    "target_layer_ids": [1, 9, 17, 25, 36]

After:

    "target_layer_ids": [1, 9, 17, 25, 33]

## How to fix

Serve the draft with the model that it was trained for, or correct the ids: a list that counts one more
(`eagle_aux_hidden_state_layer_ids`) is not what this key means.
"""

from collections.abc import Iterator

from dflash_audit.diagnosis.sglang_draft import whole
from dflash_audit.diagnosis.with_target import Pair, read_pair, tables_hold
from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.engines.sglang.target_classes import LAST_LAYER_LOST, LAST_LAYER_STOPS, MUSE
from dflash_audit.finding import Finding, Severity
from dflash_audit.sources.checkpoint import Checkpoint

HINT = "Serve the draft with the model that it was trained for, or name the layers that it was trained on."

MOST_TOLD = 8
"""Most ids that a message names."""


def find(run: EngineRun, checkpoint: Checkpoint, conditions: Conditions) -> Iterator[Finding]:
    """One finding for ids that cannot be tapped, and one for a target of another depth.

    Source: SGLang 0.5.23 `srt/speculative/dflash_utils.py`, `resolve_target_layer_ids`; the target
    classes' own, see `target_classes`. Public records: Model-Optimizer#2149, ROCmFPX#44.
    """
    pair = read_pair(run, checkpoint, conditions)
    if pair is None or pair.depth is None:
        return
    yield from _untapped(pair, pair.depth, tables_hold(run))
    made_for = whole(pair.draft.either("num_target_layers"))
    if made_for is not None and made_for != pair.depth:
        yield _finding(
            pair,
            "warning",
            "num_target_layers",
            f"num_target_layers is {made_for}, and the target has {pair.depth} layers: the draft was trained"
            f" for another model, or the key is wrong. {pair.draft.engine} says so in its log alone, and goes"
            " by the target.",
        )


def _untapped(pair: Pair, depth: int, known: bool) -> Iterator[Finding]:
    key, ids = pair.draft.captured
    beyond = [layer for layer in ids or () if not 0 <= layer < depth]
    if beyond:
        told = ", ".join(map(str, beyond[:MOST_TOLD]))
        yield _finding(
            pair,
            "error",
            key,
            f"{key} names {told}, and the target's {depth} layers count from 0 to {depth - 1}:"
            f" {pair.draft.engine} {_outcome(pair, key)}.",
        )
    elif known and depth - 1 in (ids or ()):
        yield from _last(pair, key, depth)


def _outcome(pair: Pair, key: str) -> str:
    """What becomes of an id out of range; those of the DSpark key are not looked at."""
    if key == "target_layer_ids":
        return "does not start"
    return "gets a feature too few, and fails at its first request if not before"


def _last(pair: Pair, key: str, depth: int) -> Iterator[Finding]:
    name = pair.architecture
    shifted = pair.target.model_type == "muse_glimmer" and pair.draft.model_class in MUSE
    if shifted or name in LAST_LAYER_STOPS:
        outcome = f"{pair.draft.engine} does not start: the class {name} cannot tap its last layer"
    elif name in LAST_LAYER_LOST:
        outcome = (
            f"the class {name} does not hand over what its last layer puts out, so {pair.draft.engine} gets a"
            " feature too few and fails at its first request"
        )
    else:
        return
    message = f"{key} names {depth - 1}, the last of the target's {depth} layers: {outcome}."
    yield _finding(pair, "error", key, message)


def _finding(pair: Pair, severity: Severity, key: str, message: str) -> Finding:
    return Finding("target-layers", severity, pair.draft.engine, key, message, HINT, (key,))
