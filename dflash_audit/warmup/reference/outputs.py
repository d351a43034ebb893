"""What a forward pass gives."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class Outputs:
    """The outputs of a forward pass.

    `hidden` is [requests, rows, hidden]; `candidate_ids` and `candidate_logits`
    are [requests, slots, candidates], the likeliest first; `tokens` [requests,
    slots]. `out_of_range` are ids that would have indexed past a table, as
    (table, id, rows).
    """

    hidden: torch.Tensor
    candidate_ids: torch.Tensor
    candidate_logits: torch.Tensor
    tokens: torch.Tensor
    out_of_range: tuple[tuple[str, int, int], ...]
