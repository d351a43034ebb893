"""Held against the draft that it was made from, the draft computes something else.

With `--against` both drafts run on the same inputs, and the original once more with random errors in each
linear, as large as honest rounding of its weights and inputs explains. So the hidden states after each layer
have a cosine with the original's, and one that is to be expected of this very draft; candidates likewise. How
much further off it may be, and what that was measured on, stands in `docs/fidelity.md`. A cosine that
rounding does explain is a warning where it is low all the same.

## Why it matters

A draft whose hidden states point elsewhere proposes other tokens, which the target turns down: it is served,
and speeds nothing up.

## Example

Before, zero points that are off by one in an AWQ export, whose norms took in scales, so that its weights
cannot be held against the original's:

    mean cosine of the hidden states 0.01, where rounding leaves 0.91

After:

    mean cosine of the hidden states 0.90

## How to fix

Where `warmup-weight-drift` names matrices, mend those. Else look at what is in no weight: scales of the
inputs, norms, biases. If rounding explains it, give the weights more bits, smaller groups or an asymmetric
scheme, leave the layers dense that suffer most (`fc`, `down_proj`), or calibrate.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding, Severity

if TYPE_CHECKING:
    from dflash_audit.warmup.result import Cosine, Fidelity, WarmUp

FURTHER: Final = 4.0
"""So many times as far from 1 as rounding explains, a cosine is an error: `docs/fidelity.md`."""

NEAR: Final = 0.002
"""What every dtype and kernel may take from a cosine."""

LOW: Final = 0.7
"""A cosine of the last hidden states below which a draft is of little use, rounding or not."""

FEWER: Final = 3.0
"""So many times as few candidates in common as rounding leaves are an error."""

MANY: Final = 0.3
"""The least share in common that says something when it is missed."""

HINT: Final = (
    "Mend what warmup-weight-drift names; else look at input scales, norms and biases, which no weight shows."
)
ROUNDING: Final = "Give the weights more bits or smaller groups, leave layers dense, or calibrate."


def find(warmup: "WarmUp", run: EngineRun) -> Iterator[Finding]:
    """One finding for the stage that is furthest off, one for the candidates."""
    fidelity = warmup.fidelity
    if fidelity is None:
        return
    for severity, subject, message in (*_hidden(fidelity), *_candidates(fidelity)):
        hint = HINT if severity == "error" else ROUNDING
        yield Finding("warmup-hidden-drift", severity, run.engine, subject, message, hint)


def further(cosine: "Cosine") -> float:
    """How many times as far from 1 a mean cosine is as rounding explains."""
    return (1 - cosine.mean) / max(1 - cosine.rounding, NEAR)


Told = tuple[Severity, str, str]


def _hidden(fidelity: "Fidelity") -> Iterator[Told]:
    worst = max(fidelity.cosines, key=further, default=None)
    if worst is None:
        return
    if further(worst) > FURTHER:
        yield "error", f"the stage {worst.stage}", _told(worst, fidelity.against)
    elif fidelity.cosines[-1].mean < LOW:
        last = fidelity.cosines[-1]
        yield "warning", f"the stage {last.stage}", _told(last, fidelity.against)


def _told(cosine: "Cosine", against: str) -> str:
    return (
        f"The hidden states have a mean cosine of {cosine.mean:.3f} with those of {against},"
        f" where rounding of this draft's weights leaves about {cosine.rounding:.3f}."
    )


def _candidates(fidelity: "Fidelity") -> Iterator[Told]:
    common, usual = fidelity.common, fidelity.common_rounding
    if common is not None and usual is not None and usual > MANY and common < usual / FEWER:
        told = (
            f"Of the candidates {common:.0%} are those of {fidelity.against},"
            f" where rounding of this draft's weights leaves about {usual:.0%}."
        )
        yield "error", "the candidates", told
