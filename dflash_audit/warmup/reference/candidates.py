"""The likeliest tokens of each slot by the target's head.

Source: SGLang 0.5.23 `srt/models/dflash.py`, `candidate_topk`.
"""

from dataclasses import dataclass
from typing import Final

import torch
import torch.nn.functional as F

from dflash_audit.forward import Head, LiLiCorr, Selector

SHOWN: Final = 4
"""Candidates that are shown of a draft whose head looks at all tokens."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """`all_logits` are [requests, slots, tokens]; `ids` and `logits` [requests, slots, k], best first."""

    all_logits: torch.Tensor
    ids: torch.Tensor
    logits: torch.Tensor


def candidates(hidden: torch.Tensor, table: torch.Tensor, head: Head | None) -> Candidates:
    """[requests, slots, hidden] through the target's head [tokens, hidden]."""
    all_logits = F.linear(hidden, table)
    logits, ids = torch.topk(all_logits, _count(head, table.shape[0]), dim=-1)
    return Candidates(all_logits, ids, logits)


def _count(head: Head | None, tokens: int) -> int:
    return head.top_k if isinstance(head, Selector | LiLiCorr) else min(SHOWN, tokens)
