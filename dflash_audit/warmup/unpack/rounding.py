"""What kernels do to their inputs: quantize, and multiply the numbers with their scale later.

Each function gives the quantized numbers times their scale, in the dtype of
its input of [..., inputs], and raises Refused where the kernel wants whole groups of
inputs and there are none. The kernels clip with `fmin` and `fmax`, which make
the greatest number of a NaN; here a NaN stays, so that poison is not hidden.
"""

from typing import Final

import torch

from dflash_audit.refusal import Refused

FP8_MAX: Final = 448.0
FP4_MAX: Final = 6.0
INT8_MAX: Final = 127.0
LEAST: Final = 1e-10
"""The least magnitude that a group counts as having.

Source: SGLang 0.5.23 `kernels/jit/csrc/gemm/per_token_group_quant.cuh` and
`kernels/ops/quantization/int8_kernel.py`.
"""


def _by_group(x: torch.Tensor, width: int) -> torch.Tensor:
    """[..., inputs] -> [..., groups, width], in float32."""
    if x.shape[-1] % width:
        raise Refused(f"no kernel quantizes {x.shape[-1]} inputs in groups of {width}")
    return x.float().unflatten(-1, (-1, width))


def to_fp8(values: torch.Tensor) -> torch.Tensor:
    """float32 -> the nearest e4m3 numbers, the greatest for what lies beyond, in float32."""
    return values.clamp(-FP8_MAX, FP8_MAX).to(torch.float8_e4m3fn).float()


def fp8_by_token(x: torch.Tensor) -> torch.Tensor:
    """FP8 with a scale for each token, also for each row of a weight.

    Source: SGLang 0.5.23 `kernels/jit/csrc/gemm/per_token_quant_fp8.cuh`.
    """
    values = x.float()
    scale = values.abs().amax(-1, keepdim=True) / FP8_MAX
    numbers = to_fp8(values * scale.reciprocal())
    # A token of zeros has the scale 0, which brings back zeros whatever its numbers are.
    return torch.where(scale == 0, 0.0, numbers * scale).to(x.dtype)


def fp8_by_group(x: torch.Tensor, width: int) -> torch.Tensor:
    """FP8 with a scale for each `width` inputs of a token.

    Source: SGLang 0.5.23 `kernels/jit/csrc/gemm/per_token_group_quant.cuh`.
    """
    values = _by_group(x, width)
    largest = values.abs().amax(-1, keepdim=True).clamp(min=LEAST)
    numbers = to_fp8(values * (FP8_MAX / largest))
    return (numbers * (largest / FP8_MAX)).flatten(-2).to(x.dtype)


def fp8_static(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """FP8 with one scale from the checkpoint, a scalar.

    Source: SGLang 0.5.23 `static_quant_fp8` in `kernels/ops/quantization/fp8_kernel.py`
    and `kernels/jit/csrc/gemm/per_tensor_quant_fp8.cuh`.
    """
    return (to_fp8(x.float() * scale.float().reciprocal()) * scale.float()).to(x.dtype)


def mxfp8(x: torch.Tensor) -> torch.Tensor:
    """FP8 with a power of two for each 32 inputs, the least that makes them fit.

    Source: SGLang 0.5.23 `mxfp8_group_quantize` in `srt/layers/quantization/fp8_utils.py`
    and `kernels/ops/quantization/mxfp8_quant.py`.
    """
    values = _by_group(x, 32)
    fraction, exponent = torch.frexp(values.abs().amax(-1, keepdim=True) / FP8_MAX)
    # frexp gives a fraction in [0.5, 1), so that 0.5 is a power of two itself.
    exponent = torch.where(fraction == 0.5, exponent - 1, exponent).clamp(-127, 127)
    scale = torch.where(fraction.isnan(), torch.nan, torch.exp2(exponent.float()))
    return (to_fp8(values / scale) * scale).flatten(-2).to(x.dtype)


def nvfp4(x: torch.Tensor, global_scale: torch.Tensor) -> torch.Tensor:
    """FP4 with an FP8 scale for each 16 inputs, all multiplied by `global_scale`, a scalar.

    Source: SGLang 0.5.23 `fp4_quantize` in `srt/layers/quantization/fp4_utils.py`.
    """
    values = _by_group(x, 16) * global_scale.float()
    scale = to_fp8(values.abs().amax(-1, keepdim=True) / FP4_MAX)
    numbers = torch.where(scale == 0, scale, to_fp4(values / scale))
    return (numbers * scale / global_scale.float()).flatten(-2).to(x.dtype)


def to_fp4(values: torch.Tensor) -> torch.Tensor:
    """float32 -> the nearest e2m1 numbers (ties to even), 6 for what lies beyond, in float32."""
    size = values.abs()
    step = torch.where(size < 2, 0.5, torch.where(size < 4, 1.0, 2.0))
    return (torch.round(values / step) * step).clamp(-FP4_MAX, FP4_MAX)


def int8_by_token(x: torch.Tensor) -> torch.Tensor:
    """INT8 with a scale for each token, halves rounded away from zero.

    Source: SGLang 0.5.23 `per_token_quant_int8` in `kernels/ops/quantization/int8_kernel.py`.
    """
    values = x.float()
    largest = values.abs().amax(-1, keepdim=True).clamp(min=LEAST)
    numbers = values * (INT8_MAX / largest)
    numbers = torch.trunc(numbers + torch.copysign(torch.tensor(0.5, device=x.device), numbers))
    return (numbers * (largest / INT8_MAX)).to(x.dtype)
