"""Rotary position embedding.

Source: SGLang 0.5.23 `srt/layers/rotary_embedding/utils.py`, `apply_rotary_emb`;
`rope_variant.py`, `Phi3LongRoPEScaledRotaryEmbedding`, for the long frequencies.
"""

import torch

from dflash_audit.forward import Frequencies, Rope


def rotate(rope: Rope, positions: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Turn the heads of tokens by their positions: [...] and [..., heads, head_dim] -> the same."""
    turning, still = x[..., : rope.rotary_dim].float(), x[..., rope.rotary_dim :]
    frequencies = _frequencies(rope, positions)
    inverse = torch.tensor(frequencies.inverse, dtype=torch.float32, device=x.device)
    angles = (positions.float().unsqueeze(-1) * inverse).unsqueeze(-2)
    cos, sin = angles.cos() * frequencies.magnitude, angles.sin() * frequencies.magnitude
    if rope.neox:
        first, second = turning.chunk(2, dim=-1)
        turned = torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
    else:
        first, second = turning[..., ::2], turning[..., 1::2]
        turned = torch.stack((first * cos - second * sin, second * cos + first * sin), dim=-1).flatten(-2)
    return torch.cat((turned.to(x.dtype), still), dim=-1)


def _frequencies(rope: Rope, positions: torch.Tensor) -> Frequencies:
    if rope.long is not None and bool((positions > rope.long.after).any()):
        return rope.long.frequencies
    return rope.frequencies
