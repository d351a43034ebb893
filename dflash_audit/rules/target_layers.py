"""The draft taps layers that the target does not have or does not hand over.

`target_layer_ids` count the target's layers from 0 and mean the output of the layer, so the last one is
`num_hidden_layers` - 1. That one is special: most of SGLang's classes hand over what goes *into* the layer
after the tapped one, and some have no such place after their last. Nearly all of vLLM's hand it over.

vLLM counts from 1, with 0 for what goes into the first layer, and so does the list that it reads first,
`eagle_aux_hidden_state_layer_ids`.

## Why it matters

For an id beyond the last layer neither engine starts. In SGLang the last layer's own output stops some
classes as they start, and others hand over one feature too few, which fails the first request; vLLM makes a
first run as it starts, and stops where a feature is missing. A draft whose `num_target_layers` is not the
target's was trained for another model: SGLang says so in a line of its log alone, vLLM nowhere.

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

from dflash_audit.diagnosis.sglang_draft import Draft, whole
from dflash_audit.diagnosis.vllm_pair import Pair as VLLMPair
from dflash_audit.diagnosis.vllm_pair import read_vllm_pair
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
    classes' own, see `target_classes`; vLLM 0.33.0, see `vllm_features`. Public records:
    Model-Optimizer#2149, ROCmFPX#44.
    """
    pair = read_pair(run, checkpoint, conditions)
    if pair is not None and pair.depth is not None:
        yield from _untapped(pair, pair.depth, tables_hold(run))
        yield from _another_depth(pair.draft, pair.depth, "says so in its log alone, and goes by the target")
    served = read_vllm_pair(run, checkpoint, conditions)
    if served is not None and served.depth is not None:
        yield from _not_handed_over(served, served.depth)
        yield from _another_depth(served.draft, served.depth, "does not look at it, and goes by the target")


def _another_depth(draft: Draft, depth: int, handling: str) -> Iterator[Finding]:
    made_for = whole(draft.either("num_target_layers"))
    if made_for is not None and made_for != depth:
        yield _finding(
            draft,
            "warning",
            "num_target_layers",
            f"num_target_layers is {made_for}, and the target has {depth} layers: the draft was trained"
            f" for another model, or the key is wrong. {draft.engine} {handling}.",
        )


def _not_handed_over(pair: VLLMPair, depth: int) -> Iterator[Finding]:
    features, handed = pair.features, pair.handed_over
    key, named, asked = features.key, features.named, features.asked
    if key is None or named is None or asked is None:
        return
    if pair.stops_at_the_embedding:
        message = (
            f"{key} names {named[asked.index(0)]}, what goes into the target's first layer:"
            f" {pair.draft.engine} does not start, for the class {pair.architecture} cannot hand it over."
        )
        yield _finding(pair.draft, "error", key, message)
    if handed is None or features.joined or pair.fits:
        return
    lost = [layer for layer, counted in zip(named, asked, strict=True) if counted not in handed]
    if not lost:
        return
    beyond = [layer for layer, counted in zip(named, asked, strict=True) if not 0 <= counted <= depth]
    told = ", ".join(map(str, (beyond or lost)[:MOST_TOLD]))
    if beyond:
        first, there = features.first, " there" if features.first else ""
        fact = f"the target's {depth} layers count from {first} to {first + depth - 1}{there}"
    else:
        which = "what its last layer puts out" if depth in asked else "what goes into its first layer"
        fact = f"the class {pair.architecture} does not hand over {which}"
    outcome = f"{pair.draft.engine} gets {len(handed)} of {features.built_for} features, and does not start"
    yield _finding(pair.draft, "error", key, f"{key} names {told}, and {fact}: {outcome}.")


def _untapped(pair: Pair, depth: int, known: bool) -> Iterator[Finding]:
    key, ids = pair.draft.captured
    beyond = [layer for layer in ids or () if not 0 <= layer < depth]
    if beyond:
        told = ", ".join(map(str, beyond[:MOST_TOLD]))
        yield _finding(
            pair.draft,
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
    yield _finding(pair.draft, "error", key, message)


def _finding(draft: Draft, severity: Severity, key: str, message: str) -> Finding:
    return Finding("target-layers", severity, draft.engine, key, message, HINT, (key,))
