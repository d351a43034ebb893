"""Quantized numbers times their scales, by groups of inputs."""

from collections.abc import Callable, Iterator
from typing import Final

import torch

PIECE: Final = 1 << 24
"""Weights that are in float32 at a time, so that a large layer is never there twice."""

ROWS: Final = 64
"""Rows of a piece are multiples of it: no packed number is cut."""

Numbers = Callable[[slice], torch.Tensor]
"""Rows of the outputs -> their quantized numbers, [rows, inputs] in any dtype."""


def scaled(
    numbers: Numbers,
    scales: torch.Tensor,
    inputs: int,
    groups: torch.Tensor | None = None,
    zeros: torch.Tensor | None = None,
) -> torch.Tensor:
    """(numbers - zeros) * scales -> [outputs, inputs] in bfloat16.

    `scales` and `zeros` are [outputs, groups]; `groups` holds the group of each
    input, None where the inputs divide evenly and in order. An input whose group
    lies outside the scales gets NaN: the engine would read memory that is not theirs.
    """
    outputs, count = scales.shape
    scales = scales.float()
    if groups is None and count > 1:
        groups = torch.arange(inputs, device=scales.device) // (inputs // count)
    if groups is not None:
        scales = torch.nn.functional.pad(scales, (0, 1), value=torch.nan)
        inside = (groups >= 0) & (groups < count)
        groups = torch.where(inside, groups.long(), count)
        zeros = None if zeros is None else torch.nn.functional.pad(zeros, (0, 1))
    weight = torch.empty((outputs, inputs), dtype=torch.bfloat16, device=scales.device)
    for rows in _pieces(outputs, inputs):
        values = numbers(rows).float()
        if zeros is not None:
            values -= _spread(zeros[rows], groups)
        weight[rows] = values * _spread(scales[rows], groups)
    return weight


def rounded(weight: torch.Tensor, round_rows: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """A dense weight of [outputs, inputs] after `round_rows`, which goes by row."""
    result = torch.empty_like(weight)
    for rows in _pieces(*weight.shape):
        result[rows] = round_rows(weight[rows])
    return result


def _pieces(outputs: int, inputs: int) -> Iterator[slice]:
    step = max(PIECE // inputs // ROWS, 1) * ROWS
    for start in range(0, outputs, step):
        yield slice(start, min(start + step, outputs))


def _spread(by_group: torch.Tensor, groups: torch.Tensor | None) -> torch.Tensor:
    """[rows, groups] -> [rows, inputs], or [rows, 1] for one group."""
    return by_group if groups is None else by_group[:, groups]


def scaled_by_block(weight: torch.Tensor, scales: torch.Tensor, block: tuple[int, int]) -> torch.Tensor:
    """[outputs, inputs] times a scale for each block, the last of which may be cut, in bfloat16.

    Source: SGLang 0.5.23 `block_quant_dequant` in `srt/layers/quantization/fp8_utils.py`.
    """
    outputs, inputs = weight.shape
    by_row = scales.repeat_interleave(block[0], dim=0)[:outputs]
    groups = torch.arange(inputs, device=weight.device) // block[1]
    return scaled(weight.__getitem__, by_row, inputs, groups)
