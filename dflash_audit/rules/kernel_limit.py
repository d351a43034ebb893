"""A linear is too small, or out of step, for the kernel that its scheme runs on.

The load takes any size. The kernel does not: Marlin packs outputs by 64 and works in tiles of 64 by 128,
FP8 by block wants whole blocks of inputs, INT8 has no kernel on some cards. Which kernel runs follows from
the scheme and from the card (`--gpu`), and the sizes of one rank from `--tp`.

## Why it matters

The server loads the draft and then stops: while it lays out the weights, or when it warms up.

## Example

Before: the gate of a Laguna draft with 72 heads has 72 outputs, and the recipe packed it in 4 bits.

    "ignore": []

After:

    "ignore": ["re:(.*\\\\.)?g_proj$"]

## How to fix

Leave the layer out of the recipe and quantize again, or take a scheme whose kernel has no such limit (FP8
by row, NVFP4). Where it comes from the ranks, use fewer.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from dflash_audit.diagnosis.kernel_limits import Limit, Stage, limit
from dflash_audit.diagnosis.sglang_draft import is_sglang
from dflash_audit.diagnosis.stored import disagreements
from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.finding import Finding
from dflash_audit.fold import title
from dflash_audit.sources.checkpoint import Checkpoint


def find(run: EngineRun, checkpoint: Checkpoint, conditions: Conditions) -> Iterator[Finding]:
    """One finding a limit, for all layers that break it and are built as they are on disk."""
    if not is_sglang(run) or run.plan is None or run.refusal is not None:
        return
    limits = {name: limit(module, conditions.capability) for name, module in run.plan.modules.items()}
    odd = disagreements(run.plan.modules, checkpoint.tensors) if any(limits.values()) else {}
    broken: dict[Limit, list[str]] = {}
    for name, found in limits.items():
        if found is not None and name not in odd:
            broken.setdefault(found, []).append(name)
    for found, names in broken.items():
        yield Finding(
            rule="kernel-limit",
            severity="error",
            engine=run.engine,
            subject=title(names),
            message=f"{run.engine} {STOPS[found.stage]}: {found.reason} ({found.source}).",
            hint=_hint(conditions),
            subjects=tuple(names),
        )


STOPS: Final[Mapping[Stage, str]] = {
    "after the load": "loads this layer and stops before it serves",
    "at its first forward": "stops at the first forward of this layer",
}


def _hint(conditions: Conditions) -> str:
    ranks = "; or use fewer ranks than --tp says" if conditions.tp > 1 else ""
    return f"Leave the layer out of the recipe and ignore it, or quantize it by another scheme{ranks}."
