"""The mask token is missing or outside the vocabulary.

A block is filled with the row that the target's embedding has for `mask_token_id`.

## Why it matters

SGLang does not start where the id is no row of the target's embedding, and resizes none. A DSpark draft
without an id does not start at all; a DFlash draft without one gets the id that the target's tokenizer has
for `mask_token`.

vLLM looks it up in the table that the draft embeds with, the target's or its own, whatever it is: on one rank
that is an assert on the GPU. On several ranks, and in the rows by which a table is filled up to a multiple of
64, the token is embedded as zeros, which no draft was trained with, unless a mask_embedding.pt takes their
place. Without an id it does not start (`refused-start`).

## Example

Before, for a vocabulary of 151936:

    "mask_token_id": 151936

After:

    "mask_token_id": 151669

## How to fix

Set `mask_token_id` to the id that the draft was trained with, a row of the target's own embedding. A draft
that was trained with a row added to the embedding has to be trained again, or served with a
mask_embedding.pt.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from dflash_audit.diagnosis.sglang_draft import Draft, read_draft, whole
from dflash_audit.diagnosis.vllm_draft import read_draft as read_by_vllm
from dflash_audit.diagnosis.vllm_features import beside_target
from dflash_audit.diagnosis.vllm_mask_token import named_mask
from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.engines.vllm.padding import padded
from dflash_audit.finding import Finding
from dflash_audit.rules.mask_embedding import FILE as MASK_EMBEDDING
from dflash_audit.sources.checkpoint import Checkpoint

if TYPE_CHECKING:
    from dflash_audit.target import Target


def find(run: EngineRun, checkpoint: Checkpoint, conditions: Conditions) -> Iterator[Finding]:
    """One finding for an id that is missing or outside the vocabulary: the target's, where one is named.

    Source: SGLang 0.5.23 `srt/speculative/dflash_worker_v2.py`, `_resolve_mask_token_id`;
    `srt/speculative/dspark_components/dspark_config.py`, `resolve_runtime_config`; vLLM 0.33.0
    `model_executor/layers/vocab_parallel_embedding.py`.
    """
    draft = read_by_vllm(run, checkpoint)
    if draft is not None and run.tree is not None:
        yield from _in_vllm(draft, run, checkpoint, conditions)
    draft = read_draft(run, checkpoint)
    if draft is None:
        return
    token = _token(draft)
    rows = None if conditions.target is None else _rows(conditions.target, draft)
    vocabulary = whole(draft.config.get("vocab_size")) if draft.given("vocab_size") else None
    if draft.dspark and token is None:
        yield _finding(
            draft,
            f"config.json gives no mask_token_id: {draft.engine} does not start with a DSpark draft that has"
            " none.",
        )
    elif token is not None and rows is not None:
        if token >= rows:
            yield _beyond(draft, token, rows)
    elif token is not None and vocabulary is not None and token >= vocabulary:
        yield _finding(
            draft,
            f"mask_token_id is {token} and vocab_size {vocabulary}: with a target of this vocabulary"
            f" {draft.engine} would not start, for there is no such row.",
        )


def _in_vllm(
    draft: Draft, run: EngineRun, checkpoint: Checkpoint, conditions: Conditions
) -> Iterator[Finding]:
    named, own = named_mask(draft.config), whole(draft.config.get("vocab_size"))
    token = None if named is None else named.token
    if named is None or token is None or own is None:
        return
    if token < 0:
        # On several ranks an id below zero is no rank's, and comes out as zeros.
        outcome = "fails at its first request if not before" if conditions.tp == 1 else "embeds it as zeros"
        message = f"{named.key} is {token}, which is no row of an embedding: {draft.engine} {outcome}."
        yield replace(_finding(draft, message), severity="error" if conditions.tp == 1 else "warning")
        return
    if conditions.target is None:
        if draft.given("vocab_size") and token >= padded(own):
            yield _finding(
                draft,
                f"{named.key} is {token} and vocab_size {own}: with a target of this vocabulary"
                f" {draft.engine} would find no such row in the embedding.",
            )
        return
    pair = beside_target(run, checkpoint, conditions)
    tokens = None if pair is None else pair.target.vocab_size if pair.borrows_embedding else own
    if pair is None or tokens is None:
        return
    table = f"the embedding that the draft {'takes from the target' if pair.borrows_embedding else 'brings'}"
    told = f"{named.key} is {token}, and {table} has {tokens} tokens"
    if token >= padded(tokens) and conditions.tp == 1:
        message = f"{told}: {draft.engine} fails at its first request if not before."
        yield replace(_finding(draft, message), severity="error")
    elif token >= tokens and MASK_EMBEDDING not in checkpoint.names:
        yield _finding(draft, f"{told}: {draft.engine} embeds it as zeros.")


def _rows(target: "Target", draft: Draft) -> int | None:
    """The ids that the engine takes: a DSpark worker asks for the rows of a padded embedding first.

    Source: SGLang 0.5.23 `srt/speculative/dspark_components/dspark_worker_v2.py`.
    """
    return (target.number("padded_vocab_size") if draft.dspark else None) or target.vocab_size


def _beyond(draft: Draft, token: int, rows: int) -> Finding:
    told = f"mask_token_id is {token}, and the target's embedding has {rows} rows"
    message = f"{told}: {draft.engine} does not start."
    return replace(_finding(draft, message), severity="error")


def _token(draft: Draft) -> int | None:
    """The id by the order of `parse_dspark_draft_config`, or of `parse_dflash_draft_config`."""
    if not draft.dspark:
        return whole(draft.either("mask_token_id"))
    own = draft.config.get("dspark_config")
    inner = {**draft.inner, **(own if isinstance(own, dict) else {})}
    noise = whole(draft.config.get("dspark_noise_token_id"))
    return whole(inner.get("mask_token_id", draft.config.get("mask_token_id"))) if noise is None else noise


def _finding(draft: Draft, message: str) -> Finding:
    hint = "Set mask_token_id to the id that the draft was trained with, a row of the target's embedding."
    subjects = ("mask_token_id",)
    return Finding("mask-token", "warning", draft.engine, "mask_token_id", message, hint, subjects)
