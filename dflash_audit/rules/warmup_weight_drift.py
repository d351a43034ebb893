"""Held against the draft that it was made from, a matrix has weights that rounding does not explain.

With `--against` every linear is unpacked as the engine's kernel reads it and compared with the original's.
What honest rounding to the stored bits does is known: rows and groups keep their magnitude and their mean.
A row or group of another magnitude has a wrong scale, one of another mean a wrong zero point. The limits and
what they were measured on stand in `docs/fidelity.md`.

Where a layer's norms differ as well, scales were moved into them by design (AWQ, SmoothQuant). Its weights
are not judged then: the hidden states alone are, by `warmup-hidden-drift`.

## Why it matters

Nothing is missing and nothing is refused: the draft is served, and drafts worse than it could. A few rows
under a wrong scale hardly show in the hidden states of a warm-up and still cost tokens on each request.

## Example

Before, an export that sorts the scales' groups by name, `10` before `2`:

    down_proj.weight_scale[:, 2] holds the scales of group 10

After:

    down_proj.weight_scale[:, 2] holds the scales of group 2

## How to fix

Write each scale and zero point beside the weights that it was made from: the same rows, shard and group. A
zero point that is off by one everywhere comes of the formats that store it less one (GPTQ) and of those that
do not. If every matrix is named, the draft was held against another than it was made from.
"""

from collections.abc import Iterator, Mapping
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding
from dflash_audit.fold import title

if TYPE_CHECKING:
    from dflash_audit.warmup.result import Drift, Numbers, WarmUp


class Limits(NamedTuple):
    """The most that rounding may do; `gain` and `group` are how far a ratio, or its inverse, is above one."""

    gain: float
    group: float
    shift: float
    error: float


LIMITS: Final[Mapping[tuple["Numbers", int], Limits]] = {
    ("float", 16): Limits(gain=inf, group=inf, shift=inf, error=0.01),
    ("int", 8): Limits(gain=0.05, group=0.05, shift=0.016, error=0.15),
    ("float", 8): Limits(gain=0.10, group=0.16, shift=0.10, error=0.08),
    ("int", 4): Limits(gain=0.25, group=0.35, shift=0.22, error=0.50),
    ("float", 4): Limits(gain=0.20, group=0.50, shift=0.40, error=0.30),
}
"""Numbers and bits -> the limits, each between the most that honest rounding showed, over drafts of normal,
uneven, heavy-tailed and outlier-heavy weights, and the least of the faults: `docs/fidelity.md` has both.
Dense weights have no scale."""

SCALES: Final = "Write each scale beside the rows, shard and group that it was made from; none twice."
MENDS: Final[Mapping[str, str]] = {
    "gain": SCALES,
    "group": "Write the scales in the order of their groups, not transposed and not sorted by name.",
    "shift": "Write the zero points as the format has them: of the same group, and not off by one.",
    "error": "Hold it against the draft that it was made from; if that is this one, export it again.",
}


def find(warmup: "WarmUp", run: EngineRun) -> Iterator[Finding]:
    """One finding for all matrices that go wrong in the same way."""
    fidelity = warmup.fidelity
    if fidelity is None:
        return
    wrong: dict[str, list[Drift]] = {}
    for drift in filter(fidelity.judges, fidelity.drifts):
        for fault in list(_faults(drift))[:1]:
            wrong.setdefault(fault, []).append(drift)
    for fault, drifts in wrong.items():
        names = tuple(drift.matrix for drift in drifts)
        worst = max(drifts, key=lambda drift: measure(drift, fault))
        told = _message(worst, fault, fidelity.against)
        if len(drifts) > 1:
            told = f"{told[:-1]}, in {worst.matrix}."
        yield Finding("warmup-weight-drift", "error", run.engine, title(names), told, MENDS[fault], names)


def _faults(drift: "Drift") -> Iterator[str]:
    """What is beyond its limit; a wrong scale shows in all, so what tells most comes first."""
    limits = LIMITS[drift.numbers, drift.bits]
    for fault in MENDS:
        if measure(drift, fault) > getattr(limits, fault):
            yield fault


def measure(drift: "Drift", fault: str) -> float:
    """How far a drift is from none in one of the fields of `Limits`."""
    if fault == "error":
        return drift.error
    if fault == "shift":
        return abs(drift.shift)
    ratio: float = getattr(drift, fault)
    return max(ratio, 1 / ratio) - 1 if ratio > 0 else inf


def _message(worst: "Drift", fault: str, against: str) -> str:
    limit: float = getattr(LIMITS[worst.numbers, worst.bits], fault)
    rounding = _rounding(worst)
    if fault == "error":
        return (
            f"The weights differ from those of {against} by {worst.error:.1%} of their size,"
            f" and {rounding} changes them by {limit:.0%} at most."
        )
    if fault == "shift":
        return (
            f"A group's mean lies {abs(worst.shift):.2f} of its weights' size off that in {against},"
            f" and {rounding} moves it by {limit:.2g} at most: a wrong zero point."
        )
    part, ratio = ("row", worst.gain) if fault == "gain" else (f"group of {worst.width}", worst.group)
    return (
        f"A {part} has {ratio:.2f} times its magnitude in {against},"
        f" and {rounding} leaves it between {1 / (1 + limit):.2f} and {1 + limit:.2f}: a wrong scale."
    )


def _rounding(drift: "Drift") -> str:
    if drift.bits == 16:
        return "a cast"
    return f"rounding to {drift.bits}-bit {'integers' if drift.numbers == 'int' else 'floats'}"
