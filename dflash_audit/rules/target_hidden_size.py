"""The target's hidden states are of another width than the draft takes.

A target hands over one vector of its own `hidden_size` for each tapped layer, and its embedding and its head
are of that width. SGLang builds `fc` for the draft's `hidden_size` times the tapped layers, and reads no
`target_hidden_size`. vLLM reads it, and then the draft has to bring an embedding and a head of its own.

## Why it matters

The server fails, and not before it has loaded both models: SGLang as it captures its graphs, or at its first
request, with a message about the features of the target; vLLM in the first run that it makes as it starts.

## Example

Before: a draft of 4096 that was trained for another model, beside a target of 5120.

    "hidden_size": 4096

After: the draft of this target.

    "hidden_size": 5120

## How to fix

Serve the draft with the model that it was trained for. A draft narrower than its target on purpose
(`target_hidden_size`) needs an engine that reads that key, and its own embedding and head in the checkpoint.
"""

from collections.abc import Iterator
from typing import Final

from dflash_audit.diagnosis.sglang_draft import whole
from dflash_audit.diagnosis.vllm_pair import Pair as VLLMPair
from dflash_audit.diagnosis.vllm_pair import read_vllm_pair
from dflash_audit.diagnosis.with_target import Pair, read_pair
from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.finding import Finding
from dflash_audit.sources.checkpoint import Checkpoint

MADE_FOR: Final = "Serve the draft with the model that it was trained for."
AUX: Final = "use_aux_hidden_state"
OWN_TABLES: Final = (
    "Serve the draft with the model that it was trained for; one that is narrower on purpose has to bring its"
    " own embed_tokens.weight and lm_head.weight."
)


def find(run: EngineRun, checkpoint: Checkpoint, conditions: Conditions) -> Iterator[Finding]:
    """One finding if the widths differ.

    Source: SGLang 0.5.23 `srt/models/dflash.py`, `project_target_hidden`, and the `fc` of `DFlashDraftModel`;
    vLLM 0.33.0, see `vllm_features` and `vllm_pair`. Public record: SpecForge#560.
    """
    served = read_vllm_pair(run, checkpoint, conditions)
    if served is not None and served.target.hidden_size is not None:
        found = _in_vllm(served, served.target.hidden_size)
        yield from () if found is None else (found,)
    pair = read_pair(run, checkpoint, conditions)
    if pair is None or None in (pair.hidden, pair.target.hidden_size):
        return
    if pair.hidden == pair.target.hidden_size:
        return
    message = (
        f"hidden_size is {pair.hidden}, and that of the target {pair.target.hidden_size}:"
        f" {run.engine} builds fc for features as wide as the draft, and fails at its first request"
        f" if not before{_unread(pair)}."
    )
    yield _finding(run.engine, "hidden_size", message, MADE_FOR)


def _finding(engine: str, key: str, message: str, hint: str) -> Finding:
    return Finding("target-hidden-size", "error", engine, key, message, hint, (key,))


def _in_vllm(pair: VLLMPair, theirs: int) -> Finding | None:
    return _wrong_features(pair, theirs) or _wrong_tables(pair, theirs)


def _wrong_features(pair: VLLMPair, theirs: int) -> Finding | None:
    """Features that do not fit for their width, rather than for a layer that is missing."""
    features, engine, handed = pair.features, pair.draft.engine, pair.handed_over
    count = features.distinct if handed is None else len(handed)
    if not count or features.width is None or count * theirs == features.built_for * features.width:
        return None
    if features.joined:
        fact = f"{AUX} is false, and {engine} takes {count} features of {theirs} as they are, in a row"
        message = f"{fact}: it does not start, for the draft's width is {pair.hidden}."
        return _finding(engine, AUX, message, f"Leave {AUX} out, and ship fc.weight.")
    if features.width == theirs:
        return None
    key = features.width_key
    message = (
        f"{key} is {features.width}, and the target's hidden_size {theirs}: {engine} builds fc for"
        f" {features.built_for} features of {features.width}, gets {count} of {theirs}, and does not start."
    )
    return _finding(engine, key, message, MADE_FOR)


def _wrong_tables(pair: VLLMPair, theirs: int) -> Finding | None:
    """Tables that the draft takes from the target, of another width than its layers."""
    borrowed = [("embedding", pair.borrows_embedding), ("head", pair.borrows_head)]
    tables = " and ".join(name for name, borrows in borrowed if borrows)
    if not tables or pair.hidden == theirs:
        return None
    engine = pair.draft.engine
    message = (
        f"hidden_size is {pair.hidden}, and that of the target {theirs}: {engine} gives the draft the"
        f" target's {tables}, of another width than its layers, and does not start."
    )
    return _finding(engine, "hidden_size", message, OWN_TABLES)


def _unread(pair: Pair) -> str:
    made_for = whole(pair.draft.raw.get("target_hidden_size"))
    if made_for is None:
        return ""
    return f"; target_hidden_size {made_for}, which other engines honour, it does not read"
