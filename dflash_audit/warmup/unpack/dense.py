"""Dense layers.

Source: SGLang 0.5.23 `srt/layers/quantization/unquant.py`.
"""

from collections.abc import Mapping

import torch

from dflash_audit.tree import Module
from dflash_audit.warmup.linear import DenseLinear
from dflash_audit.warmup.unpack.layer import bias


def dense(module: Module, stored: Mapping[str, torch.Tensor]) -> DenseLinear:
    """`UnquantizedLinearMethod`, and a plain `nn.Linear`: the weight itself, not copied."""
    return DenseLinear(stored["weight"], bias(module, stored))
