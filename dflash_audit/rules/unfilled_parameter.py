"""A parameter, or a shard of a fused one, that nothing fills.

The draft is built with it, and no tensor of the checkpoint reaches it. Parameters that have a right value
of their own (the scales of a KV cache, the input scale of NVFP4) are not counted.

## Why it matters

It keeps what its memory held: zeros, ones, or numbers of whatever ran there before. The draft then answers
garbage, an acceptance length of 1.0, or NaN, and not the same each time.

## Example

Before: a quantizer packed `fc`, which SGLang 0.5.23 builds dense. Its three tensors are dropped and
`fc.weight` is never filled.

    fc.weight_packed, fc.weight_scale, fc.weight_shape

After, with `fc` in the ignore list of the recipe:

    fc.weight

## How to fix

Add the tensor under the name and in the layout that the engine expects, or change the config so that the
engine expects what is there.
"""

from collections.abc import Iterator

from dflash_audit.drops import owner
from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding
from dflash_audit.fold import fold
from dflash_audit.loadplan import LoadPlan


def find(run: EngineRun) -> Iterator[Finding]:
    """One finding for all layers of a parameter that stays unfilled in the same way."""
    if run.plan is None:
        return
    refused = {owner(run.plan.modules, refusal.tensor) for refusal in run.plan.refusals if refusal.tensor}
    missing = {
        # What a refused tensor leaves open is told with its refusal.
        name: shards
        for name, shards in run.plan.missing().items()
        if run.plan.slots[name].module not in refused
    }
    for shards in dict.fromkeys(missing.values()):
        names = [name for name, absent in missing.items() if absent == shards]
        for subject, members in fold(names).items():
            yield _finding(run, run.plan, subject, members, shards)


def _finding(
    run: EngineRun, plan: LoadPlan, subject: str, names: tuple[str, ...], shards: tuple[str | int, ...]
) -> Finding:
    slot = plan.slots[names[0]]
    parts = "" if shards == ("all",) else f" in its shards {', '.join(str(shard) for shard in shards)}"
    share = sum(plan.slots[name].numel for name in names)
    return Finding(
        rule="unfilled-parameter",
        severity="error",
        engine=run.engine,
        subject=subject,
        message=(
            f"No tensor fills this parameter of {slot.module.module_class}{parts}"
            f" ({share:,} numbers): {run.engine} runs on what its memory holds."
        ),
        hint="Add the tensor in the layout that the engine expects, or change the config to match.",
        subjects=names,
    )
