"""The target's head or embedding is stored in a form that this kind of draft cannot use.

A DFlash draft has neither of its own: its blocks are embedded with the target's table, and its hidden states
go through the target's head. How it reads them depends on its kind.

| draft | head |
|---|---|
| plain DFlash | any with one rank; dense with several |
| DFlash2, LiLiCorr | dense, or quantized under the name `weight` (FP8, NVFP4) |
| DSpark | dense, or quantized under the name `weight` |
| Domino | dense, and so is the embedding |

A draft that ships a `mask_embedding.pt` needs a dense embedding too.

## Why it matters

Packed heads (`lm_head.weight_packed`, `lm_head.qweight`) have no matrix to multiply with. SGLang stops as it
starts, or the first request does.

## Example

Before: a target of which everything was packed in 4 bits.

    "ignore": []

After: a target with a dense head, as most are published.

    "ignore": ["lm_head"]

## How to fix

Serve the draft with a target whose head is dense: leave `lm_head` out of the recipe and quantize it again.
Where it is the ranks, serve on one.
"""

from collections.abc import Iterator
from enum import Enum

from dflash_audit.diagnosis.sglang_draft import SELECTORS
from dflash_audit.diagnosis.with_target import Pair, read_pair
from dflash_audit.dtypes import DENSE_FLOATS, TORCH
from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.engines.sglang.target_heads import DENSE_HEADED
from dflash_audit.finding import Finding
from dflash_audit.rules.mask_embedding import FILE as MASK_EMBEDDING
from dflash_audit.sources.checkpoint import Checkpoint, Tensor


class Form(Enum):
    """How a table is stored: a dense `weight`, a quantized one under that name, or without one."""

    DENSE = "dense"
    SCALED = "quantized"
    PACKED = "packed"


WITH_CANDIDATES = frozenset((*SELECTORS, "LiLiCorrDraftModel"))


def find(run: EngineRun, checkpoint: Checkpoint, conditions: Conditions) -> Iterator[Finding]:
    """One finding for the head, and one for the embedding.

    Source: SGLang 0.5.23 `srt/models/dflash.py`, `candidate_topk`; `srt/speculative/dflash_worker_v2.py`,
    `_greedy_sample_from_quantized_head`; `srt/speculative/dspark_components/dspark_worker_v2.py`;
    `srt/speculative/domino_utils.py`, `validate_domino_runtime`; `srt/layers/logits_processor.py`,
    `should_apply_lm_head_quant_method`.
    Public record: sglang#35534.
    """
    pair = read_pair(run, checkpoint, conditions)
    if pair is None:
        return
    if pair.target.quantization in DENSE_HEADED:
        return
    # A tied target has no head of its own: its embedding is used for both.
    head = None if pair.target.tied else form(pair.target.head)
    embedding = form(pair.target.embedding)
    fault = _head_fault(pair, head, conditions.tp) if head else None
    if fault is not None:
        yield _finding(pair, pair.target.head, f"The target's head is {_told(head)}: {fault}.")
    fault = _embedding_fault(pair, embedding, checkpoint.names) if embedding else None
    if fault is not None:
        yield _finding(pair, pair.target.embedding, f"The target's embedding is {_told(embedding)}: {fault}.")


def form(tensors: tuple[Tensor, ...]) -> Form | None:
    """The form of a table, None where it is not stored, or not in a form that is known here."""
    parts = {tensor.name.rpartition(".")[2]: tensor for tensor in tensors}
    if "weight" in parts:
        dtype = TORCH.get(parts["weight"].dtype, parts["weight"].dtype)
        return Form.DENSE if dtype in DENSE_FLOATS else Form.SCALED
    return Form.PACKED if {"weight_packed", "qweight"} & parts.keys() else None


def _head_fault(pair: Pair, head: Form, ranks: int) -> str | None:
    draft = pair.draft
    if head is Form.DENSE:
        return None
    if draft.either("projector_type") == "domino":
        return f"{draft.engine} wants a dense one for a Domino draft, and does not start"
    if draft.dspark:
        stops = f"{draft.engine} wants one with a parameter weight for a DSpark draft, and does not start"
        return stops if head is Form.PACKED else None
    if draft.model_class in WITH_CANDIDATES:
        stops = f"{draft.engine} cannot take candidates from it, and fails at its first request"
        return stops if head is Form.PACKED else None
    if ranks > 1:
        return (
            f"{draft.engine} takes one that is not dense with one rank alone, and fails at its first request"
            " with several"
        )
    return None


def _embedding_fault(pair: Pair, embedding: Form, names: tuple[str, ...]) -> str | None:
    draft = pair.draft
    if embedding is Form.DENSE:
        return None
    if draft.either("projector_type") == "domino":
        return f"{draft.engine} wants a dense one for a Domino draft, and does not start"
    if MASK_EMBEDDING in names and not draft.dspark:
        return f"{draft.engine} cannot write the row of {MASK_EMBEDDING} into it, and does not start"
    return None


def _told(form: Form | None) -> str:
    return "" if form is None else form.value


def _finding(pair: Pair, tensors: tuple[Tensor, ...], message: str) -> Finding:
    # Not the first by name alone: a scale says less than what it scales.
    named = "target." + min(tensors, key=lambda tensor: ("scale" in tensor.name, tensor.name)).name
    hint = "Serve the draft with a target whose head and embedding are dense (ignore lm_head as it is made)."
    return Finding("target-head", "error", pair.draft.engine, named, message, hint, (named,))
