"""Domino: a GRU over the tokens so far corrects the logits of the slots after the first.

Source: SGLang 0.5.23 `srt/speculative/domino_utils.py`, `domino_greedy_rollout`.
"""

import torch
import torch.nn.functional as F

from dflash_audit.forward import Domino
from dflash_audit.warmup.reference.gru import GRU
from dflash_audit.warmup.reference.modules import Modules

GRU_NAME = "prefix_gru"
INNER, OUTER = "embed_proj.0", "embed_proj.2"


def domino_rows(head: Domino, hidden: torch.Tensor) -> torch.Tensor:
    """The rows that predict the slots: each slot's own, or with `shift_label` the one before it."""
    return hidden[:, :-1] if head.shift_label else hidden[:, 1:]


def domino(
    modules: Modules,
    head: Domino,
    logits: torch.Tensor,
    rows: torch.Tensor,
    anchors: torch.Tensor,
    embedding: torch.Tensor,
) -> torch.Tensor:
    """The likeliest tokens step by step: [requests, slots, tokens] logits -> [requests, slots].

    Args:
        rows: what predicts the slots, [requests, slots, hidden].
        embedding: the target's, [tokens, hidden].
    """
    gru = GRU(
        modules.parameter(f"{GRU_NAME}.weight_ih_l0", rows.dtype),
        modules.parameter(f"{GRU_NAME}.weight_hh_l0", rows.dtype),
    )
    inner, outer = modules.weights.linear(INNER), modules.weights.linear(OUTER)

    def follow(state: torch.Tensor, token: torch.Tensor) -> torch.Tensor:
        embedded = modules.tables.look_up("the target's embedding", embedding, token)
        return modules.watch.module(GRU_NAME, gru.step(embedded, state))

    pool = _pool(head, logits)
    token = logits[:, 0].argmax(dim=-1)
    tokens = [token]
    state = follow(rows.new_zeros(rows.shape[0], head.gru_hidden_dim), anchors)
    for slot in range(1, logits.shape[1]):
        state = follow(state, token)
        middle = modules.watch.module(INNER, inner(torch.cat((rows[:, slot], state), dim=-1)))
        correction = modules.watch.module(OUTER, outer(F.silu(middle)))
        corrected = modules.watch.out(logits[:, slot].gather(-1, pool) + correction.gather(-1, pool))
        token = pool.gather(-1, corrected.argmax(dim=-1, keepdim=True)).squeeze(-1)
        tokens.append(token)
    return torch.stack(tokens, dim=1)


def _pool(head: Domino, logits: torch.Tensor) -> torch.Tensor:
    """The tokens that are corrected, [requests, tokens]: the likeliest anywhere after the first slot."""
    tokens = logits.shape[-1]
    if logits.shape[1] == 1 or not 0 < head.pool < tokens:
        return torch.arange(tokens, device=logits.device).expand(logits.shape[0], -1)
    return torch.topk(logits[:, 1:].amax(dim=1), head.pool, dim=-1, sorted=False).indices
