"""Markov heads: each step's logits get a bias from the token of the step before.

Source: SGLang 0.5.23 `srt/models/dspark.py`, `VanillaMarkov`, `GatedMarkovHead`,
`RNNHead`; `dspark_components/dspark_draft.py`, `draft_markov_block`.
"""

from collections.abc import Callable

import torch

from dflash_audit.forward import Markov
from dflash_audit.warmup.linear import DenseLinear
from dflash_audit.warmup.reference.modules import Modules

NAME = "markov_head"
STATES = f"{NAME}.markov_w1"
PROJECTION = f"{NAME}.markov_w2"

Step = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""The embedding of the token before, [requests, rank], and the row -> what is projected, [requests, rank]."""


def markov(
    modules: Modules, head: Markov, logits: torch.Tensor, hidden: torch.Tensor, anchors: torch.Tensor
) -> torch.Tensor:
    """The likeliest tokens step by step: [requests, slots, tokens] logits -> [requests, slots]."""
    table = modules.weights.parameter(f"{STATES}.weight")
    projection = modules.weights.linear(PROJECTION)
    step = _step(modules, head)
    token, tokens = anchors, []
    for slot in range(logits.shape[1]):
        state = modules.tables.look_up(f"{STATES}.weight", table, token).to(hidden.dtype)
        state = step(modules.watch.module(STATES, state), hidden[:, slot])
        bias = modules.watch.module(PROJECTION, projection(state))[..., : logits.shape[-1]]
        token = modules.watch.out(logits[:, slot] + bias).argmax(dim=-1)
        tokens.append(token)
    return torch.stack(tokens, dim=1)


def _step(modules: Modules, head: Markov) -> Step:
    if head.kind == "gated":
        return _gated(modules, modules.weights.linear(f"{NAME}.gate_proj"))
    if head.kind == "rnn":
        return _Recurrent(modules, modules.weights.linear(f"{NAME}.joint_proj"), head.rank)
    return lambda embedded, hidden: embedded


def _gated(modules: Modules, projection: DenseLinear) -> Step:
    def step(embedded: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        gate = projection(torch.cat((hidden, embedded), dim=-1))
        return torch.sigmoid(modules.watch.module(f"{NAME}.gate_proj", gate)) * embedded

    return step


class _Recurrent:
    """A state, at first zero, that is kept from step to step."""

    def __init__(self, modules: Modules, projection: DenseLinear, rank: int) -> None:
        self.modules, self.projection, self.rank = modules, projection, rank
        self.state: torch.Tensor | None = None

    def __call__(self, embedded: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        state = torch.zeros_like(embedded) if self.state is None else self.state
        joint = self.projection(torch.cat((state, embedded, hidden), dim=-1))
        keep, new, output = self.modules.watch.module(f"{NAME}.joint_proj", joint).split(self.rank, dim=-1)
        keep = torch.sigmoid(keep)
        self.state = keep * state + (1.0 - keep) * torch.tanh(new)
        return torch.tanh(output)
