"""In the warm-up, NaN or infinities come out of a draft that is filled.

Either the checkpoint holds them itself, or the arithmetic leaves the range of the dtype that it runs in.
What comes of parameters that nothing fills is told by `warmup-unfilled`.

## Why it matters

A hidden state that is not a number makes every candidate as good as any other: the draft's tokens are
never accepted, and no error is shown.

## Example

Before: weights with activations beyond 65,504, run in float16.

    dflash-audit DRAFT --warmup --dtype float16

After, in the dtype that the engine builds drafts in:

    dflash-audit DRAFT --warmup --dtype bfloat16

## How to fix

Export the tensors that are named again, from weights that are finite. Where none is named, run the draft in
bfloat16, whose range is that of float32; if it overflows there, look for a scale that is far too large, or
inverted.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding
from dflash_audit.fold import title
from dflash_audit.warmup.reached import outputs

if TYPE_CHECKING:
    from dflash_audit.warmup.result import Source, WarmUp

FLOAT16: Final = "Run it in bfloat16, or scale down what goes into that module: float16 ends at 65,504."
OVERFLOW: Final = (
    "Look at the scales of that module and of those before it: one is far too large, or inverted."
)
TENSORS: Final = "Export these tensors again, from weights that are finite."


def find(warmup: "WarmUp", run: EngineRun) -> Iterator[Finding]:
    """One finding for tensors that are not finite, one for arithmetic that overflows."""
    if not warmup.reached:
        return
    own = [source for source in warmup.sources if source.tensors and not source.unfilled]
    plain = [source for source in warmup.sources if not source.tensors and not source.unfilled]
    if own:
        tensors = tuple(dict.fromkeys(name for source in own for name in source.tensors))
        told = f"The checkpoint itself holds NaN or infinities here, and {_course(warmup, own[0])}."
        yield Finding("warmup-nonfinite", "error", run.engine, title(tensors), told, TENSORS, tensors)
    if plain:
        modules = tuple(dict.fromkeys(source.module for source in plain))
        told = f"The numbers leave the range of {warmup.dtype} here, and {_course(warmup, plain[0])}."
        hint = FLOAT16 if warmup.dtype == "float16" else OVERFLOW
        yield Finding("warmup-nonfinite", "error", run.engine, title(modules), told, hint, modules)
    if not warmup.sources:
        yield _outside(warmup, run)


def _course(warmup: "WarmUp", first: "Source") -> str:
    return f"they reach {outputs(warmup)}: first out of {first.module}, in the stage {first.stage}"


def _outside(warmup: "WarmUp", run: EngineRun) -> Finding:
    """What no module with parameters makes: attention, a norm's square, a product."""
    stage = next((stage.name for stage in warmup.stages if not stage.finite), warmup.stages[-1].name)
    told = (
        f"NaN or infinities reach {outputs(warmup)}: no module's own parameters make them,"
        f" the arithmetic between modules leaves the range of {warmup.dtype}, first in the stage {stage}."
    )
    hint = FLOAT16 if warmup.dtype == "float16" else OVERFLOW
    return Finding("warmup-nonfinite", "error", run.engine, f"the stage {stage}", told, hint)
