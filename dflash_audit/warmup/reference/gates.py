"""Laguna's gate on what attention gives.

Source: SGLang 0.5.23 `srt/models/dflash.py`, `DFlashLagunaAttention.apply_attention_output`.
"""

import torch
import torch.nn.functional as F

from dflash_audit.warmup.reference.modules import Modules


def gated(modules: Modules, name: str, attended: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
    """[..., heads * head_dim], opened by the attention's input [..., hidden]; as it is without a gate."""
    attention = modules.forward.attention
    if attention.gate is None:
        return attended
    gate = F.softplus(modules.linear(f"{name}.g_proj", hidden).float()).to(attended.dtype)
    if attention.gate == "per-head":
        gate = gate.repeat_interleave(attention.head_dim, dim=-1)
    return attended * gate
