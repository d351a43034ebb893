"""A greedy walk through a lattice of candidates.

Source: SGLang 0.5.23 `kernels/ops/speculative/dflash.py`, `_selector_walk_kernel`.
"""

import torch


def walk(scores: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """The best candidate of each slot after the one taken before it.

    Args:
        scores: [requests, slots, previous, next]; the first slot's first row counts.
        ids: [requests, slots, candidates]

    Returns:
        [requests, slots] tokens.
    """
    requests = torch.arange(ids.shape[0], device=ids.device)
    taken = torch.zeros_like(requests)
    tokens = []
    for slot in range(ids.shape[1]):
        taken = scores[requests, slot, taken].argmax(dim=-1)
        tokens.append(ids[requests, slot, taken])
    return torch.stack(tokens, dim=1)
