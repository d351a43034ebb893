"""In the warm-up, memory that nothing filled comes out of the draft.

Every parameter, or shard of a fused one, that no tensor fills holds NaN or a pattern of its own in the
warm-up, and the forward pass reads it: what the draft proposes depends on it. A parameter that nothing
fills and that the forward pass does not read is not told of.

## Why it matters

On a server that memory holds zeros or whatever ran there before. The draft answers garbage, and not the
same each time: finite and wrong on a fresh card, NaN on a busy one.

## Example

Before: SGLang 0.5.23 asks the ignore list about `qkv_proj` and builds it packed, while the checkpoint holds
q, k and v dense. They are dropped, and the warm-up finds the poison first in `layers.0.self_attn.qkv_proj`.

    "ignore": ["re:.*q_proj$", "re:.*k_proj$", "re:.*v_proj$"]

After, with both spellings:

    "ignore": ["re:.*q_proj$", "re:.*k_proj$", "re:.*v_proj$", "re:.*qkv_proj$"]

## How to fix

Mend what `unfilled-parameter` says of the same parameters: that finding names the cause.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding
from dflash_audit.fold import title
from dflash_audit.warmup.reached import outputs

if TYPE_CHECKING:
    from dflash_audit.warmup.result import WarmUp

HINT: Final = "Mend what unfilled-parameter names: the warm-up shows that the draft reads it."


def find(warmup: "WarmUp", run: EngineRun) -> Iterator[Finding]:
    """One finding for all that is unfilled and read, if poison reached an output."""
    sources = [source for source in warmup.sources if source.unfilled]
    if not warmup.reached or not sources:
        return
    unfilled = tuple(dict.fromkeys(name for source in sources for name in source.unfilled))
    modules = tuple(dict.fromkeys(source.module for source in sources))
    first = f" out of {sources[0].module}" if len(modules) > 1 else ""
    yield Finding(
        rule="warmup-unfilled",
        severity="error",
        engine=run.engine,
        subject=title(unfilled),
        message=(
            f"What was in memory comes out of {title(modules)}, first{first} in the stage {sources[0].stage},"
            f" and reaches {outputs(warmup)}."
        ),
        hint=HINT,
        subjects=unfilled,
    )
