"""A draft's modules by name: fetched, applied, and shown to the watch."""

from dataclasses import dataclass

import torch

from dflash_audit.forward import Forward
from dflash_audit.warmup.reference.norms import rms_norm
from dflash_audit.warmup.reference.tables import Tables
from dflash_audit.warmup.reference.weights import Weights
from dflash_audit.warmup.watch import Watch


@dataclass(frozen=True, slots=True)
class Modules:
    """What every part of a forward pass is given; names are those of the engine's tree."""

    forward: Forward
    weights: Weights
    watch: Watch
    tables: Tables

    def parameter(self, name: str, dtype: torch.dtype) -> torch.Tensor:
        return self.weights.parameter(name).to(dtype)

    def linear(self, name: str, x: torch.Tensor) -> torch.Tensor:
        return self.watch.module(name, self.weights.linear(name)(x))

    def norm(self, name: str, x: torch.Tensor) -> torch.Tensor:
        """One of the backbone's norms, Gemma's where the draft has those."""
        weight = self.weights.parameter(f"{name}.weight")
        return self.watch.module(name, rms_norm(x, weight, self.forward.eps, self.forward.gemma_norms))

    def plain_norm(self, name: str, x: torch.Tensor) -> torch.Tensor:
        """A norm that is never Gemma's."""
        return self.watch.module(
            name, rms_norm(x, self.weights.parameter(f"{name}.weight"), self.forward.eps)
        )

    def add_and_norm(
        self, name: str, x: torch.Tensor, residual: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The norm of x + residual, which is not rounded before; and that sum, rounded."""
        total = x.float() + residual.float()
        weight = self.weights.parameter(f"{name}.weight")
        normed = rms_norm(total, weight, self.forward.eps, self.forward.gemma_norms).to(x.dtype)
        return self.watch.module(name, normed), total.to(x.dtype)
