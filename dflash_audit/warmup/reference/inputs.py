"""What a draft is run on: random numbers, the same on every device."""

from dataclasses import dataclass
from typing import Final

import torch

from dflash_audit.forward import Forward, LiLiCorr, Selector

STAND_IN_ROWS: Final = 4096
"""Tokens of the stand-ins for the target's embedding and head: enough to choose from, little to hold."""

EMBEDDING_SCALE: Final = 0.02
"""Small, as trained embeddings are: with larger ones the residual hides what the layers do."""

HEAD_SCALE: Final = 0.05


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs of a forward pass over a few requests at once.

    `features` are the target's, [context tokens, taps * hidden]; request i has
    the first `lengths[i]` of those tokens for its context. `embedding` and
    `head`, both [rows, hidden], stand in for the target's. `anchors`, [requests],
    are the tokens that the blocks start with, `mask_id` the one that fills them.
    """

    features: torch.Tensor
    lengths: torch.Tensor
    embedding: torch.Tensor
    head: torch.Tensor
    anchors: torch.Tensor
    mask_id: int


def random_inputs(
    forward: Forward, seed: int, blocks: int, context: int, dtype: torch.dtype, device: torch.device
) -> Inputs:
    """Inputs from a seed.

    Args:
        blocks: requests, with contexts of different lengths up to `context` tokens.
        dtype: of the numbers, which are drawn in float32 on the CPU.
    """
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator)

    rows = stand_in_rows(forward)
    features = normal(context, forward.taps * forward.hidden_size)
    embedding = normal(rows, forward.hidden_size) * EMBEDDING_SCALE
    head = normal(rows, forward.hidden_size) * HEAD_SCALE
    anchors = torch.randint(rows, (blocks,), generator=generator)
    lengths = torch.tensor([max(1, context * (block + 1) // blocks) for block in range(blocks)])
    return Inputs(
        features.to(device, dtype),
        lengths.to(device),
        embedding.to(device, dtype),
        head.to(device, dtype),
        anchors.to(device),
        _mask_id(forward, rows),
    )


def stand_in_rows(forward: Forward) -> int:
    """Tokens of the stand-ins: no more than the draft's own tables have, no fewer than its candidates."""
    candidates = forward.head.top_k if isinstance(forward.head, Selector | LiLiCorr) else 1
    rows = max(STAND_IN_ROWS, candidates)
    return rows if forward.vocab_size is None else min(rows, forward.vocab_size)


def _mask_id(forward: Forward, rows: int) -> int:
    """The mask's row: in the draft's own embedding the one that it names, else one of the stand-in."""
    if forward.mask_token_id is None:
        return rows - 1
    return forward.mask_token_id if forward.own_embedding else min(forward.mask_token_id, rows - 1)
