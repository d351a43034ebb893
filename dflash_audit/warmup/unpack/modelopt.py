"""ModelOpt: FP8 with static inputs, and NVFP4.

Source: SGLang 0.5.23 `srt/layers/quantization/modelopt_quant.py`.
"""

from collections.abc import Mapping
from functools import partial

import torch

from dflash_audit.tree import Module
from dflash_audit.warmup.linear import DenseLinear
from dflash_audit.warmup.unpack.fields import fields
from dflash_audit.warmup.unpack.layer import bias
from dflash_audit.warmup.unpack.nvfp4 import on_marlin
from dflash_audit.warmup.unpack.one_scale import requantized
from dflash_audit.warmup.unpack.rounding import fp8_static


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

    def numbers(rows: slice) -> torch.Tensor:
        return _e2m1(fields(packed[rows], 4))

    return on_marlin(module, stored, numbers, stored["weight_scale_2"].max())


def _e2m1(bits: torch.Tensor) -> torch.Tensor:
    """Four bits in uint8 (sign, two of exponent, one of mantissa) -> what they stand for, in float32.

    e4m3 has the same fields with room around them, and a bias that is greater by 6.
    """
    as_e4m3 = (bits & 8) << 4 | (bits & 7) << 2
    return as_e4m3.view(torch.float8_e4m3fn).float() * 2**6
