"""Grouped dynamic convolutions around attention and MLP.

A kernel that is fixed for each channel, plus one that the input itself gives for
each group of channels, runs over a row and the rows before it in its block. One
projection of the input gives the kernels for the input and for the output.

Source: SGLang 0.5.23 `srt/models/dflash.py`, `DFlashGroupedConv`.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F

from dflash_audit.forward import Convolution
from dflash_audit.warmup.reference.modules import Modules

INPUT, OUTPUT = 0, 1


def convolved(
    modules: Modules, name: str, hidden: torch.Tensor, inner: Callable[[torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    """`inner` between its two convolutions, on [requests, rows, hidden]; alone in a draft without them."""
    convolution = modules.forward.convolution
    if convolution is None:
        return inner(hidden)
    base = modules.parameter(f"{name}.base_kernel", hidden.dtype)
    groups = hidden.shape[-1] // convolution.group
    dynamic = modules.linear(f"{name}.kernel_projection", hidden)
    dynamic = dynamic.unflatten(-1, (2, convolution.kernel, groups))

    def convolve(x: torch.Tensor, side: int) -> torch.Tensor:
        return modules.watch.module(
            name, convolve_blocks(convolution, x, base[side], dynamic[..., side, :, :])
        )

    return convolve(inner(convolve(hidden, INPUT)), OUTPUT)


def convolve_blocks(
    convolution: Convolution, x: torch.Tensor, base: torch.Tensor, dynamic: torch.Tensor
) -> torch.Tensor:
    """[requests, rows, hidden] by a fixed and a dynamic kernel -> the same.

    Args:
        base: [taps, hidden]
        dynamic: [requests, rows, taps, groups]
    """
    rows = x.flatten(0, 1).unflatten(-1, (-1, convolution.group))
    kernel = base.unflatten(-1, (-1, convolution.group)) + dynamic.flatten(0, 1).unsqueeze(-1)
    place = torch.arange(rows.shape[0], device=x.device) % convolution.block_size
    total = kernel[:, 0] * rows
    for tap in range(1, convolution.kernel):
        shifted = F.pad(rows, (0, 0, 0, 0, tap, 0))[: rows.shape[0]]
        total = total + kernel[:, tap] * torch.where((place >= tap)[:, None, None], shifted, 0)
    return total.view_as(x)
