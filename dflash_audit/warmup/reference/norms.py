"""Root mean square norms.

Source: SGLang 0.5.23 `srt/layers/layernorm.py`, `RMSNorm` and `GemmaRMSNorm`.
"""

import torch


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float, gemma: bool = False) -> torch.Tensor:
    """[..., width] -> the same, by [width]; Gemma's weight counts from one."""
    numbers, scale = x.float(), weight.float()
    normed = numbers * torch.rsqrt(numbers.pow(2).mean(-1, keepdim=True) + eps)
    return (normed * (1.0 + scale if gemma else scale)).to(x.dtype)
