"""Stand-ins for SGLang's kernels that need a GPU.

The classes, the load and the arithmetic between the kernels stay SGLang's own.
Not replaced are schemes without a line here: they raise what they raise on a CPU.
"""

from typing import Any

import sglang.srt.layers.quantization.compressed_tensors.compressed_tensors as config
import torch
import torch.nn.functional as F
from sglang.srt.layers.quantization.compressed_tensors.schemes import CompressedTensorsWNA16
from sglang.srt.models import dflash


def stand_in() -> None:
    """Replace them for the rest of this process."""
    config.CompressedTensorsConfig._check_scheme_supported = lambda *_, **__: True
    dflash._flashinfer_top_k = None
    CompressedTensorsWNA16.process_weights_after_loading = lambda self, layer: None
    CompressedTensorsWNA16.apply_weights = multiply_unpacked


def multiply_unpacked(self: Any, layer: Any, x: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """What Marlin computes: the weight unpacked, scaled by group, rounded to the dtype of `x`, multiplied."""
    kernel = self.kernel_config
    if kernel.zero_points or kernel.has_g_idx:
        raise NotImplementedError("packed weights with zero points or in activation order, on a CPU")
    bits = kernel.weight_type.size_bits
    shifts = torch.arange(0, 32, bits, dtype=torch.int32)
    packed = layer.weight_packed.unsqueeze(-1) >> shifts
    numbers = (packed & (2**bits - 1)).flatten(1) - 2 ** (bits - 1)
    scale = layer.weight_scale.float()
    weight = numbers.float().unflatten(1, (scale.shape[1], -1)) * scale.unsqueeze(-1)
    return F.linear(x, weight.flatten(1).to(x.dtype), bias)
