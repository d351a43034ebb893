"""How far an unpacked matrix is from the one that it was made from."""

import math
from typing import Final

import torch

from dflash_audit.warmup.result import Drift
from dflash_audit.warmup.stored_form import StoredForm

PIECE: Final = 1 << 22
"""Weights that are in float32 at a time."""

FAINT: Final = 1 / 256
"""Rows, and groups, of less than this share of the median row's power say little: scales that a whole
matrix shares round them to nothing."""


def drift(name: str, form: StoredForm, ours: torch.Tensor, theirs: torch.Tensor) -> Drift | None:
    """Compare two matrices of [outputs, inputs] in any float dtype; see `Drift`.

    A group's gain, its weights projected onto the others', and its shift are means over it, so
    what honest rounding does to them is small and falls with its width, while a wrong scale or
    zero point shows whole, however large the outliers are that coarsen the rounding.

    Returns None for a matrix of zeros, or with one that is not finite.
    """
    power, product, square, total = _sums(ours, theirs, form.width)
    by_row = power.sum(-1)
    if not bool(by_row.any()) or not bool(torch.isfinite(square.sum() + by_row.sum())):
        return None
    usual = by_row[by_row > 0].median()
    rows = by_row >= usual * FAINT
    groups = power >= usual * FAINT / power.shape[1]
    shift = total[groups] / (power[groups] * form.width).sqrt()
    return Drift(
        matrix=name,
        numbers=form.numbers,
        bits=form.bits,
        width=form.width,
        error=math.sqrt(float(square.sum() / by_row.sum())),
        gain=_worst(product.sum(-1)[rows] / by_row[rows]),
        group=_worst(product[groups] / power[groups]),
        shift=float(shift[shift.abs().argmax()]),
    )


def _sums(ours: torch.Tensor, theirs: torch.Tensor, width: int) -> tuple[torch.Tensor, ...]:
    """Over each group: squares of `theirs`, their products with the difference, its squares, itself.

    Each is [outputs, groups], in float64.
    """
    found: list[list[torch.Tensor]] = [[], [], [], []]
    step = max(PIECE // theirs.shape[1], 1)
    for start in range(0, len(theirs), step):
        others = theirs[start : start + step].float().unflatten(1, (-1, width))
        difference = ours[start : start + step].float().unflatten(1, (-1, width)) - others
        parts = (others.square(), others * difference, difference.square(), difference)
        for sums, part in zip(found, parts, strict=True):
            sums.append(part.sum(-1))
    return tuple(torch.cat(sums).double() for sums in found)


def _worst(excess: torch.Tensor) -> float:
    """The gain that is furthest from one, of gains less one; half is as far as double."""
    gain = 1 + excess
    far = torch.maximum(gain, 1 / gain.clamp(min=torch.finfo(gain.dtype).tiny))
    return float(gain[far.argmax()])
