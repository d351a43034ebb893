"""The gated MLP.

Source: SGLang 0.5.23 `srt/models/dflash.py`, `DFlashMLP`; `fused_moe.py`,
`swiglu_no_interleaved_with_alpha_and_limit`.
"""

import torch
import torch.nn.functional as F

from dflash_audit.forward import Swiglu
from dflash_audit.warmup.reference.modules import Modules


def mlp(modules: Modules, name: str, hidden: torch.Tensor) -> torch.Tensor:
    """[..., hidden] -> the same."""
    gate, up = modules.linear(f"{name}.gate_up_proj", hidden).chunk(2, dim=-1)
    return modules.linear(f"{name}.down_proj", activate(gate, up, modules.forward.swiglu))


def activate(gate: torch.Tensor, up: torch.Tensor, swiglu: Swiglu | None) -> torch.Tensor:
    if swiglu is None:
        return (F.silu(gate.float()) * up.float()).to(gate.dtype)
    gate = gate.clamp(max=swiglu.limit)
    up = up.clamp(min=-swiglu.limit, max=swiglu.limit)
    return gate * torch.sigmoid(gate * swiglu.alpha) * (up + 1)
