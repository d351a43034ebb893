"""A parameter took in another amount of numbers than it holds, without an objection.

The engine takes the first rows of a tensor that is too long, and pads one that is too short with zeros.
What does so in every good load (a vocabulary that is padded, a scale that stands for all shards) is not
counted.

## Why it matters

A config whose sizes are wrong loads a draft cut down: heads are missing, the rest is right, and the
acceptance length falls without an error anywhere.

## Example

Before: 16 heads are in the checkpoint, and the config says 8. SGLang takes the first half of `q_proj` and
`o_proj`.

    "num_attention_heads": 8

After:

    "num_attention_heads": 16

## How to fix

Set the sizes in config.json (heads, key and value heads, head_dim, intermediate_size) to those of the
tensors.
"""

from collections.abc import Iterator
from typing import Final

from dflash_audit.diagnosis.scheme_sizes import scheme_hint
from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding
from dflash_audit.fold import fold
from dflash_audit.loadplan import LoadPlan, Resized, Slot
from dflash_audit.tree import Kind


def find(run: EngineRun) -> Iterator[Finding]:
    """One finding for all layers of a parameter that took in the same other amount."""
    if run.plan is None:
        return
    plan = run.plan
    missing = plan.missing()
    odd = {r.slot.name: r for r in plan.resized() if r.slot.name not in missing and not _by_design(plan, r)}
    for subject, names in fold(odd).items():
        first = odd[names[0]]
        verb = "cut down to" if first.took > first.slot.whole else "padded with zeros to"
        yield Finding(
            rule="resized-parameter",
            severity="error",
            engine=run.engine,
            subject=subject,
            message=f"{first.took:,} numbers were {verb} the {first.slot.whole:,} that it holds, in silence.",
            hint=scheme_hint(names) or SIZES,
            subjects=names,
        )


SIZES: Final = "Set the sizes in config.json (heads, head_dim, intermediate_size) to those of the tensors."


def _by_design(plan: LoadPlan, resized: Resized) -> bool:
    """Whether a parameter takes another amount in every good load.

    A group index comes whole with each shard, one scale may stand for all
    shards of a fused layer, a vocabulary is padded, and a tensor that is in two
    files is loaded twice.
    """
    slot = resized.slot
    once = _once(plan, slot)
    if once == slot.whole:
        return True
    placement = slot.parameter.placement
    if placement.kind is Kind.VOCABULARY:
        return placement.tokens is not None and once == placement.tokens * slot.parameter.shape[1]
    if slot.parameter.name.endswith("g_idx"):
        return True
    return placement.kind is Kind.TENSOR_SCALE and plan.filled()[slot.name] == {None} and resized.took == 1


def _once(plan: LoadPlan, slot: Slot) -> int:
    """How many numbers a parameter takes in if each name counts once, with `model.` before it or without."""
    took = {
        (t.name.removeprefix("model."), fill.shard): t.numel
        for t, fills in plan.fills.items()
        for fill in fills
        if fill.slot is slot
    }
    return sum(took.values())
