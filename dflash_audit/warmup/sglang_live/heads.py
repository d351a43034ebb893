"""From hidden states to tokens by the draft's own head, as SGLang's workers call it for a greedy batch.

Source: SGLang 0.5.23 `srt/speculative/dflash_worker_v2.py`, `lilicorr_utils.py`, `domino_utils.py`,
`dspark_components/dspark_draft.py`.
"""

from types import SimpleNamespace
from typing import Any

import torch
from sglang.srt.layers.vocab_parallel_embedding import ParallelLMHead

from dflash_audit.warmup.reference.inputs import Inputs
from dflash_audit.warmup.reference.outputs import Outputs
from dflash_audit.warmup.sglang_live.live_draft import LiveDraft
from dflash_audit.warmup.watch import Watch

DOMINO_POOL = 2048
"""Source: SGLang 0.5.23 `srt/arg_groups/fields/spec.py`, `speculative_domino_candidate_pool_size`."""


def proposed(
    model: Any,
    live: LiveDraft,
    hidden: torch.Tensor,
    context: torch.Tensor,
    inputs: Inputs,
    watch: Watch,
) -> Outputs:
    """Candidates through a stand-in for the target's head, tokens through the draft's own.

    A Markov or Domino head has a row for every token of its vocabulary: where the
    stand-in has fewer it is not run, and the tokens are the likeliest of each slot.

    Args:
        hidden: [requests, rows, hidden]
        context: the projected context, [context, hidden].
    """
    head = _head(inputs)
    model.lm_head = head
    domino = getattr(model, "prefix_gru", None) is not None
    rows = hidden[:, :-1] if domino and model.shift_label else hidden[:, live.first_slot :]
    if getattr(model, "candidate_selector", None) is not None:
        return _selector(model, rows, hidden, inputs, watch)
    with watch.stage("candidates"):
        logits, ids = watch.out(rows @ inputs.head.T).max(dim=-1, keepdim=True)
    tokens = ids[..., 0]
    whole = len(inputs.head) == int(model.config.vocab_size)
    if getattr(model, "lilicorr", None) is not None:
        with watch.stage("lilicorr"):
            tokens = _lilicorr(model, head, hidden, context, inputs)
    elif getattr(model, "markov_head", None) is not None and whole:
        with watch.stage("markov"):
            tokens = _markov(model, rows, inputs)
    elif domino and whole:
        with watch.stage("domino"):
            tokens = _domino(model, hidden, inputs)
    return Outputs(hidden, ids, logits, tokens, ())


def _head(inputs: Inputs) -> Any:
    """SGLang's own head with the rows of the stand-in; those that pad it are never chosen."""
    with torch.device(inputs.head.device):
        head = ParallelLMHead(*inputs.head.shape, params_dtype=inputs.head.dtype)
    head.weight.data.zero_()
    head.weight.data[: len(inputs.head)].copy_(inputs.head)
    return head


def _selector(model: Any, rows: torch.Tensor, hidden: torch.Tensor, inputs: Inputs, watch: Watch) -> Outputs:
    """As `_SelectorDraftSampler` goes."""
    requests, slots = rows.shape[:2]
    with watch.stage("candidates"):
        ids, logits = (
            part.unflatten(0, (requests, slots)) for part in model.compute_candidates(rows.flatten(0, 1))
        )
        watch.out(logits)
    with watch.stage("selector"):
        selector = model.candidate_selector
        scores = selector.build_lattice(
            candidate_ids=ids, unary_logits=logits, hidden_states=rows, anchor_token_ids=inputs.anchors
        )
        tokens, _ = selector.sample_path(
            candidate_ids=ids,
            scores=watch.out(scores),
            uniforms=torch.zeros(requests, slots, device=rows.device),
            temperatures=torch.ones(requests, device=rows.device),
            greedy_mask=torch.ones(requests, dtype=torch.bool, device=rows.device),
        )
    return Outputs(hidden, ids, logits, tokens, ())


def _lilicorr(
    model: Any, head: Any, hidden: torch.Tensor, context: torch.Tensor, inputs: Inputs
) -> torch.Tensor:
    from sglang.srt.speculative.lilicorr_utils import propose_lilicorr_block

    tokens: torch.Tensor
    tokens, _, _ = propose_lilicorr_block(
        head=model.lilicorr,
        draft_hidden=hidden,
        lm_head=head,
        embed_tokens=lambda ids: inputs.embedding[ids],
        anchor=context[inputs.lengths - 1],
    )
    return tokens


def _markov(model: Any, rows: torch.Tensor, inputs: Inputs) -> torch.Tensor:
    from sglang.srt.speculative.dspark_components.dspark_draft import DraftNoise, draft_markov_block

    requests, slots = rows.shape[:2]
    # What `compute_base_logits` gives on one rank, without the collective that it runs.
    tokens: torch.Tensor
    tokens, _ = draft_markov_block(
        markov_head=model.markov_head,
        base_logits=(rows @ inputs.head.T).view(requests, slots, -1),
        anchor_tokens=inputs.anchors,
        draft_hidden=rows,
        step_temperatures=torch.zeros(requests, device=rows.device),
        noise=DraftNoise(key=0, offset=torch.zeros(1, dtype=torch.int64, device=rows.device)),
        tp_sync=SimpleNamespace(sync=lambda site, tokens: tokens),
    )
    return tokens


def _domino(model: Any, hidden: torch.Tensor, inputs: Inputs) -> torch.Tensor:
    from sglang.srt.speculative.domino_utils import domino_greedy_rollout

    tokens: torch.Tensor = domino_greedy_rollout(
        draft_hidden=hidden,
        bonus_tokens=inputs.anchors,
        target_embedding=lambda ids: inputs.embedding[ids],
        lm_head_weight=inputs.head,
        prefix_gru=model.prefix_gru,
        embed_proj=model.embed_proj,
        vocab_size=len(inputs.head),
        shift_label=bool(model.shift_label),
        candidate_pool_size=DOMINO_POOL,
        in_cuda_graph=False,
    )
    return tokens
