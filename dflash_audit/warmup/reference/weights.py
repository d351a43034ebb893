"""Where the reference gets a draft's weights."""

from typing import Protocol

import torch

from dflash_audit.warmup.linear import DenseLinear


class Weights(Protocol):
    """Weights by the names of the engine's tree, each asked for once in a layer and dropped after use."""

    def parameter(self, full_name: str) -> torch.Tensor:
        """A parameter of a module that is no linear layer, in any float dtype, in its own shape."""
        ...

    def linear(self, module_name: str) -> DenseLinear:
        """A linear layer, quantized or not."""
        ...
