"""What SGLang builds on a GPU alone, put in its place for a build on a CPU.

Source: SGLang 0.5.23 `srt/layers/rotary_embedding/factory.py`, `rope_variant.py`,
`srt/layers/quantization/fp4_utils.py`.
"""

from typing import Any

import torch
from sglang.srt.layers.quantization import fp4_utils
from sglang.srt.layers.rotary_embedding import factory, rope_variant
from sglang.srt.models import dflash

build_rope = factory.get_rope


class RotaryEmbedding(torch.nn.Module):  # type: ignore[misc]
    """Built as SGLang builds it, for what it refuses, and thrown away: its kernels need a GPU."""

    is_neox_style = True

    def __init__(self, head_dim: int, rotary_dim: int | None = None, **more: Any) -> None:
        super().__init__()
        factory._ROPE_DICT.clear()
        build_rope(head_dim, rotary_dim=rotary_dim, **more)
        self.rotary_dim = rotary_dim
        self.register_buffer("cos_sin_cache", torch.zeros(1), persistent=False)


def replace_what_needs_a_gpu() -> None:
    dflash.get_rope = RotaryEmbedding
    rope_variant.get_device = lambda *_: "cpu"
    # A server settles this at its start.
    fp4_utils.FP4_GEMM_RUNNER_BACKEND = fp4_utils.Fp4GemmRunnerBackend.MARLIN
