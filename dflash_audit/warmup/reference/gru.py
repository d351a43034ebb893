"""A gated recurrent unit without biases, as `torch.nn.GRU` has it."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F


@dataclass(frozen=True, slots=True)
class GRU:
    """`inputs` is [3 * state, input], `states` [3 * state, state]: reset, update, new in this order."""

    inputs: torch.Tensor
    states: torch.Tensor

    def step(self, x: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        """[requests, input] and [requests, state] -> the next state."""
        reset, update, new = F.linear(x, self.inputs).chunk(3, dim=-1)
        state_reset, state_update, state_new = F.linear(state, self.states).chunk(3, dim=-1)
        reset, update = torch.sigmoid(reset + state_reset), torch.sigmoid(update + state_update)
        new = torch.tanh(new + reset * state_new)
        return new + update * (state - new)
