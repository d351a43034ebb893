"""Held against the draft that it was made from, the draft computes something else.

With `--against` both drafts run on the same inputs. The hidden states after each layer are compared by
their cosine, and the candidates by how many both have. How far apart rounding brings them hangs on the
weights and on the stored bits: below what may well be rounding it is a warning, below what can be it is an
error. The limits and what they were measured on stand in `docs/fidelity.md`.

## Why it matters

A draft whose hidden states point elsewhere proposes other tokens, which the target turns down: it is served,
and speeds nothing up.

## Example

Before: 4-bit weights of 128 in a group, some of which are ten times as large as the rest, symmetric.

    mean cosine of the hidden states 0.46

After, in smaller groups, or with those columns left dense:

    mean cosine of the hidden states 0.90

## How to fix

Where `warmup-weight-drift` names matrices, mend those. Else give the weights more bits, smaller groups or an
asymmetric scheme, leave the layers dense that suffer most (`fc`, `down_proj`), or calibrate.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding, Severity

if TYPE_CHECKING:
    from dflash_audit.warmup.result import Fidelity, WarmUp


class Limit(NamedTuple):
    """Below `usual` it is a warning, below `least` an error."""

    usual: float
    least: float


COSINE: Final[Mapping[int, Limit]] = {16: Limit(0.999, 0.99), 8: Limit(0.95, 0.90), 4: Limit(0.70, 0.20)}
"""The fewest bits in a draft -> limits of the mean cosine of the hidden states after a stage."""

COMMON: Final[Mapping[int, Limit]] = {16: Limit(0.90, 0.70), 8: Limit(0.50, 0.30), 4: Limit(0.0, 0.0)}
"""The fewest bits -> limits of the share of candidates in common. Those of a random head lie close together,
so 4 bits may leave none."""

HINT: Final = (
    "Mend what warmup-weight-drift names; else take more bits, smaller groups, or leave layers dense."
)


def find(warmup: "WarmUp", run: EngineRun) -> Iterator[Finding]:
    """One finding for the stage that is furthest off, one for the candidates."""
    fidelity = warmup.fidelity
    if fidelity is None:
        return
    bits = min((drift.bits for drift in fidelity.drifts), default=16)
    for severity, subject, message in (*_hidden(fidelity, bits), *_candidates(fidelity, bits)):
        yield Finding("warmup-hidden-drift", severity, run.engine, subject, message, HINT)


Told = tuple[Severity, str, str]


def _hidden(fidelity: "Fidelity", bits: int) -> Iterator[Told]:
    if not fidelity.cosines:
        return
    stage, mean, _ = min(fidelity.cosines, key=lambda cosine: cosine[1])
    severity = _severity(mean, COSINE[bits])
    if severity is not None:
        told = (
            f"The hidden states have a mean cosine of {mean:.3f} with those of {fidelity.against},"
            f" {_least(COSINE[bits], severity, bits)}."
        )
        yield severity, f"the stage {stage}", told


def _candidates(fidelity: "Fidelity", bits: int) -> Iterator[Told]:
    if fidelity.common is None:
        return
    severity = _severity(fidelity.common, COMMON[bits])
    if severity is not None:
        told = (
            f"Of the candidates {fidelity.common:.0%} are those of {fidelity.against},"
            f" {_least(COMMON[bits], severity, bits)}."
        )
        yield severity, "the candidates", told


def _severity(value: float, limit: Limit) -> Severity | None:
    return "error" if value < limit.least else "warning" if value < limit.usual else None


def _least(limit: Limit, severity: Severity, bits: int) -> str:
    """What rounding leaves."""
    weights = "dense weights" if bits == 16 else f"weights of {bits} bits"
    if severity == "error":
        return f"and {weights} leave more than {limit.least:g} even where some are outliers"
    return f"and {weights} leave {limit.usual:g} and more as a rule"
