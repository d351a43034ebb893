"""A number in config.json makes the draft compute nonsense: `rms_norm_eps` or `rope_theta`.

Both go into the arithmetic of every layer as they are written, and Python's JSON takes `NaN` and `Infinity`.

- `rms_norm_eps` stands under a square root. NaN makes every output NaN, infinity makes every norm zero, and
  below zero a row is NaN whose numbers are smaller. Zero divides a row of zeros by zero.
- `rope_theta` is raised to fractions. NaN, zero and a number below zero make the angles NaN or infinite, and
  at infinity only the first pair of a head's numbers is turned at all.

## Why it matters

The engine reads such a number without a word, builds, loads and starts. The draft then answers NaN, or
forgets where its tokens stand, and no token of it is accepted.

## Example

Before:

    "rms_norm_eps": NaN

After:

    "rms_norm_eps": 1e-06

## How to fix

Set the number that the draft was trained with; its training config or the original draft has it.
"""

import math
from collections.abc import Callable, Iterator
from typing import Final

from dflash_audit.diagnosis.sglang_draft import Draft, number, read_draft
from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding, Severity
from dflash_audit.sources.checkpoint import Checkpoint

HINT: Final = "Set the number that the draft was trained with: its training config or the original has it."

Broken = tuple[Severity, str]
"""How bad a number is, and what it does."""


def find(run: EngineRun, checkpoint: Checkpoint) -> Iterator[Finding]:
    """One finding a number, for a draft that the engine loads.

    Source: SGLang 0.5.23 `srt/layers/layernorm.py` (`RMSNorm`) and `srt/layers/rotary_embedding/base.py`
    (`_compute_inv_freq`), which check neither.
    """
    draft = read_draft(run, checkpoint) if run.plan is not None and run.refusal is None else None
    for key, (value, broken) in NUMBERS.items() if draft else ():
        assert draft is not None
        found = value(draft)
        said = broken(found) if found is not None else None
        if said is not None:
            severity, what = said
            message = f"{key} is {found!r}: {draft.engine} takes it as it is, and {what}."
            yield Finding("broken-number", severity, run.engine, key, message, HINT, (key,))


def _epsilon(value: float) -> Broken | None:
    if math.isnan(value):
        return "error", "every number that the draft computes is NaN"
    if math.isinf(value):
        return "error", "every norm of the draft comes out as zero, or as NaN below zero"
    if value < 0:
        return "warning", "a row whose mean square is smaller comes out of its norm as NaN"
    return ("warning", "a row of zeros comes out of its norm as NaN") if value == 0 else None


def _base(value: float) -> Broken | None:
    if math.isnan(value) or value <= 0:
        return "error", "the angles by which it turns positions are NaN or infinite, and so are its outputs"
    if math.isinf(value):
        return (
            "error",
            "turns only the first pair of a head by its position: the draft does not see the others'",
        )
    return None


NUMBERS: Final[dict[str, tuple[Callable[[Draft], float | None], Callable[[float], Broken | None]]]] = {
    "rms_norm_eps": (lambda draft: number(draft.config.get("rms_norm_eps")), _epsilon),
    "rope_theta": (lambda draft: draft.rope_base, _base),
}
