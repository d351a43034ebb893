"""Quantized numbers copied into a dense parameter, or dense ones into a quantized.

FP8 and INT8 layers name their numbers `weight`, as dense layers do. Where the config and the file disagree
about a layer, names and shapes still match.

## Why it matters

The copy succeeds and nothing objects, but the scale that gives the numbers their meaning is dropped, or
never comes. The draft accepts nothing.

## Example

Before: `fc.weight` is FP8 with a scale, and SGLang 0.5.23 builds `fc` dense. The numbers are cast to BF16,
the scale is dropped.

    fc.weight F8_E4M3, fc.weight_scale F32

After, with `fc` in the ignore list of the recipe:

    fc.weight BF16

## How to fix

Make the quantization config say what is on disk: ignore the layer if it is dense there, quantize it if it
is not.
"""

from collections.abc import Iterator
from typing import Final

from dflash_audit.diagnosis.lost_config import restore
from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding
from dflash_audit.fold import fold
from dflash_audit.loadplan import Fill

HINT: Final = "Make the quantization config say what is on disk: ignore the layer, or quantize it."


def find(run: EngineRun) -> Iterator[Finding]:
    """One finding for all layers of a tensor that loses its meaning in the same way."""
    if run.plan is None:
        return
    fills = {t.name: fill for t, all_fills in run.plan.fills.items() for fill in all_fills if fill.lossy}
    for subject, names in fold(fills).items():
        yield Finding(
            rule="lossy-cast",
            severity="error",
            engine=run.engine,
            subject=subject,
            message=_message(run, fills[names[0]]),
            hint=restore(run, names[0]) or HINT,
            subjects=names,
        )


def _message(run: EngineRun, fill: Fill) -> str:
    to = fill.slot.parameter.dtype
    return (
        f"{run.engine} copies {fill.dtype} numbers into {fill.target}, which is {to}:"
        " the copy succeeds, the numbers mean something else."
    )
