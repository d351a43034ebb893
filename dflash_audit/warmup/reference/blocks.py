"""Where the tokens of requests stand: a shared context, and a block after each one's part of it."""

from dataclasses import dataclass

import torch

from dflash_audit.forward import Layer


@dataclass(frozen=True, slots=True)
class Blocks:
    """`lengths`, [requests], are context tokens of each request, of `context` in all; a block has `rows`."""

    lengths: torch.Tensor
    context: int
    rows: int

    @property
    def context_positions(self) -> torch.Tensor:
        """[context]"""
        return torch.arange(self.context, device=self.lengths.device)

    @property
    def positions(self) -> torch.Tensor:
        """[requests, rows]"""
        return self.lengths.unsqueeze(-1) + torch.arange(self.rows, device=self.lengths.device)

    def visible(self, layer: Layer) -> torch.Tensor:
        """Which keys a row attends to: [requests, rows, context + rows], the context's keys first.

        Source: SGLang 0.5.23 `kernels/ops/attention/extend_attention.py`.
        """
        requests = self.lengths.shape[0]
        context = self.context_positions.expand(requests, -1)
        theirs = context < self.lengths.unsqueeze(-1)
        exists = torch.cat((theirs, torch.ones_like(self.positions, dtype=torch.bool)), dim=-1)
        keys = torch.cat((context, self.positions), dim=-1)
        ahead = keys.unsqueeze(-2) - self.positions.unsqueeze(-1)
        visible = exists.unsqueeze(-2).expand_as(ahead)
        if layer.window is not None:
            visible = visible & (ahead.abs() <= layer.window)
        return visible & (ahead <= 0) if layer.causal else visible
