"""The draft's rotary embedding has the default base, and the target's another.

A draft rotates its own queries and keys, so its base is whatever it was trained with: nearly always that of
its target. Exporters have written the default of a class, 10000, in its place.

## Why it matters

Nothing fails. Far apart tokens are rotated by other angles than in training, and fewer drafts are accepted
the longer the context is.

## Example

Before, beside a target with a base of 1000000:

    "rope_theta": 10000

After:

    "rope_theta": 1000000

## How to fix

Look up the base that the draft was trained with, and write it into `rope_theta` (and `rope_parameters`, if
the config has them).
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dflash_audit.diagnosis.with_target import read_pair
from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.finding import Finding
from dflash_audit.sources.checkpoint import Checkpoint

DEFAULT: Final = 10000
"""Source: transformers 5.19.0 `configuration_utils.py`, `default_theta`."""


MOST: Final = 1e12
"""A base beyond it is none."""


def find(run: EngineRun, checkpoint: Checkpoint, conditions: Conditions) -> Iterator[Finding]:
    """One finding if config.json gives the default base; without one it is `missing-key`.

    Public record: Model-Optimizer#2221.
    """
    pair = read_pair(run, checkpoint, conditions)
    if pair is None or _written(pair.draft.raw) is None:
        return
    own, theirs = pair.draft.rope_base, _written(pair.target.text)
    if own != DEFAULT or theirs in (None, DEFAULT):
        return
    yield Finding(
        rule="target-rope",
        severity="note",
        engine=run.engine,
        subject="rope_theta",
        message=(
            f"The base of the draft's rotary embedding is {own:.16g}, the default of most classes, and the"
            f" target's is {theirs:.16g}: if the draft was trained with that one, it accepts less and less as"
            " the context grows."
        ),
        hint="Set rope_theta to the base that the draft was trained with.",
        subjects=("rope_theta",),
    )


def _written(config: Mapping[str, Any]) -> float | None:
    """The base that a config.json gives, None where it gives none or one for each kind of layer.

    What a config's class makes of it, its default among it, is `Draft.rope_base`.
    """
    for key in ("rope_parameters", "rope_scaling"):
        nested = config.get(key)
        if isinstance(nested, Mapping) and (base := _number(nested.get("rope_theta"))) is not None:
            return base
    return _number(config.get("rope_theta"))


def _number(value: Any) -> float | None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if number and abs(value) < MOST else None
