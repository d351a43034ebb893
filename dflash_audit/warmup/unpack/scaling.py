"""Quantized numbers times their scales, by groups of inputs."""

from collections.abc import Callable, Iterator
from typing import Final

import torch

from dflash_audit.refusal import Refused

PIECE: Final = 1 << 22
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

    Raises:
        Refused: the inputs do not divide evenly; no kernel goes by such groups.
    """
    scales = scales.float()
    if groups is None and inputs % scales.shape[1]:
        raise Refused(f"no kernel takes {inputs} inputs in {scales.shape[1]} groups of a scale each")
    if groups is not None:
        scales, zeros, groups = _with_a_group_of_poison(scales, zeros, groups)
    weight = torch.empty((len(scales), inputs), dtype=torch.bfloat16, device=scales.device)
    for rows in _pieces(*weight.shape):
        values = _by_group(numbers(rows).float(), scales, groups)
        if zeros is not None:
            values -= _of_inputs(zeros[rows], groups)
        values *= _of_inputs(scales[rows], groups)
        weight[rows] = values.flatten(1)
    return weight


def _with_a_group_of_poison(
    scales: torch.Tensor, zeros: torch.Tensor | None, groups: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor]:
    """One more group, for the inputs whose group there is not."""
    count = scales.shape[1]
    groups = torch.where((groups >= 0) & (groups < count), groups.long(), count)
    zeros = None if zeros is None else torch.nn.functional.pad(zeros, (0, 1))
    return torch.nn.functional.pad(scales, (0, 1), value=torch.nan), zeros, groups


def _by_group(values: torch.Tensor, scales: torch.Tensor, groups: torch.Tensor | None) -> torch.Tensor:
    """[rows, inputs], and [rows, groups, inputs of each] where these are in order."""
    return values.unflatten(1, (scales.shape[1], -1)) if groups is None else values


def _of_inputs(by_group: torch.Tensor, groups: torch.Tensor | None) -> torch.Tensor:
    """[rows, groups] in a shape that `_by_group`'s takes."""
    return by_group.unsqueeze(2) if groups is None else by_group[:, groups]


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


def scaled_by_block(weight: torch.Tensor, scales: torch.Tensor, block: tuple[int, int]) -> torch.Tensor:
    """[outputs, inputs] times a scale for each block, the last of which may be cut, in bfloat16.

    Source: SGLang 0.5.23 `block_quant_dequant` in `srt/layers/quantization/fp8_utils.py`.
    """
    outputs, inputs = weight.shape
    by_row = scales.repeat_interleave(block[0], dim=0)[:outputs]
    groups = torch.arange(inputs, device=weight.device) // block[1]
    return scaled(weight.__getitem__, by_row, inputs, groups)
