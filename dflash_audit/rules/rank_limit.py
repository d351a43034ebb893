"""The draft is served on fewer ranks than --tp says, and not on so many.

A rank holds its share of each layer: heads must divide, and so must the blocks and groups of a quantized
layer. The finding names the most ranks, by powers of two, that the draft is served on.

## Why it matters

The server stops, and the message (a size that is no multiple of a block, a slice beyond the end of a scale)
does not say that the ranks are the cause.

## Example

Before: 256 inputs of `down_proj` over 4 ranks are 64, and the blocks are 128 wide.

    --tp 4

After:

    --tp 2

## How to fix

Serve on as many ranks as the finding names, or quantize by row in place of by block.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from dflash_audit.diagnosis.kernel_limits import limit
from dflash_audit.diagnosis.stopped import by_ranks
from dflash_audit.diagnosis.stored import faults
from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.engines import LIVE, engine
from dflash_audit.finding import Finding
from dflash_audit.sources.checkpoint import Checkpoint

OR_BY_ROW: Final = ", or quantize by row in place of by block or group"


def find(run: EngineRun, checkpoint: Checkpoint, conditions: Conditions) -> Iterator[Finding]:
    """One finding if a smaller power of two serves.

    Public record: sglang#26107.
    """
    if run.engine in LIVE or conditions.tp == 1 or _serves(run, conditions):
        return
    fewer = [ranks for ranks in (1, 2, 4, 8, 16, 32) if ranks < conditions.tp]
    for ranks in reversed(fewer):
        there = replace(conditions, tp=ranks)
        if _serves(engine(run.engine).replay(checkpoint, there), there):
            yield _finding(run, conditions, ranks)
            return


def _serves(run: EngineRun, conditions: Conditions) -> bool:
    if run.plan is None or run.refusal is not None or faults(run):
        return False
    return all(limit(module, conditions.capability) is None for module in run.plan.modules.values())


def _finding(run: EngineRun, conditions: Conditions, ranks: int) -> Finding:
    # A size of the draft itself that the ranks do not divide is none that quantization changes.
    return Finding(
        rule="rank-limit",
        severity="warning",
        engine=run.engine,
        subject=f"--tp {conditions.tp}",
        message=f"{run.engine} serves this draft with --tp {ranks}, and not with this many.",
        hint=f"Serve with --tp {ranks}{OR_BY_ROW if run.quantization and not by_ranks(run) else ''}.",
        subjects=(f"--tp {conditions.tp}",),
        about_size=True,
    )
