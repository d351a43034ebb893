"""ModelOpt: FP8 with static inputs, and NVFP4.

Source: SGLang 0.5.23 `srt/layers/quantization/modelopt_quant.py`.
"""

from collections.abc import Mapping
from functools import partial
from typing import Final

import torch

from dflash_audit.tree import Module
from dflash_audit.warmup.linear import DenseLinear
from dflash_audit.warmup.unpack.layer import bias
from dflash_audit.warmup.unpack.nvfp4 import on_marlin
from dflash_audit.warmup.unpack.one_scale import requantized
from dflash_audit.warmup.unpack.rounding import fp8_static

E2M1: Final = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0)
"""What four bits stand for, the sign on top. Source: the OCP Microscaling formats, e2m1."""


def fp8(module: Module, stored: Mapping[str, torch.Tensor]) -> DenseLinear:
    """`ModelOptFp8LinearMethod`: the matrices share the greatest scale, and their inputs too."""
    weight = requantized(stored["weight"], stored["weight_scale"], module)
    round_input = partial(fp8_static, scale=stored["input_scale"].max())
    return DenseLinear(weight, bias(module, stored), round_input)


def nvfp4(module: Module, stored: Mapping[str, torch.Tensor]) -> DenseLinear:
    """`ModelOptFp4LinearMethod` on an H200, and `ModelOptNvFp4A16LinearMethod`.

    The matrices share the greatest global scale as it is, whatever their own was.
    Neither `input_scale` nor `pre_quant_scale` reaches a sum.
    """
    packed = stored["weight"]
    table = torch.tensor(E2M1, device=packed.device)

    def numbers(rows: slice) -> torch.Tensor:
        pairs = torch.stack((packed[rows] & 15, packed[rows] >> 4), dim=-1)
        return table[pairs.flatten(1).int()]

    return on_marlin(module, stored, numbers, stored["weight_scale_2"].max())
