"""A parameter, or a shard of a fused one, that nothing fills.

The draft is built with it, and no tensor of the checkpoint reaches it, or only a part of it: where a
checkpoint stores q, k and v as one, the engine may put their scale in the place of the first alone.
Parameters that have a right value of their own (the scales of a KV cache, the input scale of NVFP4) are not
counted.

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

import re
from collections.abc import Iterator
from typing import Final

from dflash_audit.diagnosis import laguna_mixtures
from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding
from dflash_audit.fold import fold, pattern, title
from dflash_audit.loadplan import LoadPlan, Shard
from dflash_audit.rules import dropped_tensor

HINT: Final = "Add the tensor in the layout that the engine expects, or change the config to match."

NORM: Final = "RMSNorm"
"""The module that both engines make of ones. Source: SGLang 0.5.23 `srt/layers/layernorm.py`, vLLM 0.33.0
`model_executor/layers/layernorm.py`."""

HALF_FILLED: Final = (
    "Export the tensors of the layers that the engine fuses apart (q_proj, k_proj, v_proj, ...)."
)


def find(run: EngineRun) -> Iterator[Finding]:
    """One finding for what stays unfilled in the same way in one kind of module, in all layers."""
    if run.plan is None:
        return
    refused = {run.plan.modules.owner(refusal.tensor) for refusal in run.plan.refusals if refusal.tensor}
    one_mlps = laguna_mixtures.one_mlps(run)
    mends = dropped_tensor.mends(run)
    groups: dict[tuple[str, tuple[Shard, ...]], list[str]] = {}
    for name, shards in run.plan.missing().items():
        module = run.plan.slots[name].module
        # What a refused tensor leaves open is told with its refusal.
        if module not in refused and not laguna_mixtures.is_of(name, one_mlps):
            groups.setdefault((pattern(module.name), shards), []).append(name)
    for (_, shards), names in groups.items():
        hint = (
            mends.get(run.plan.slots[names[0]].module.name)
            or laguna_mixtures.no_experts(run, names)
            or _hint(run.plan, names[0])
        )
        yield _finding(run, run.plan, names, shards, hint)
    yield from _half_filled(run, run.plan)


ATTENTION_BIAS: Final = re.compile(r".*\.self_attn\.\w+\.bias")

ZEROS: Final = (
    "Add the tensor as zeros, which change nothing: the engine builds this bias by attention_bias, as those"
    " that are there."
)


def _hint(plan: LoadPlan, name: str) -> str:
    others = any(ATTENTION_BIAS.fullmatch(filled) for filled in plan.filled())
    return ZEROS if others and ATTENTION_BIAS.fullmatch(name) else HINT


def _half_filled(run: EngineRun, plan: LoadPlan) -> Iterator[Finding]:
    for subject, names in fold(slot.name for slot in plan.half_filled()).items():
        yield Finding(
            rule="unfilled-parameter",
            severity="error",
            engine=run.engine,
            subject=subject,
            message=(
                f"What is loaded fills only a part of its {plan.slots[names[0]].numel:,} numbers:"
                f" {run.engine} runs on what was in memory for the others."
            ),
            hint=HALF_FILLED,
            subjects=names,
        )


def _finding(
    run: EngineRun, plan: LoadPlan, names: list[str], shards: tuple[Shard, ...], hint: str
) -> Finding:
    parts = "" if shards == ("all",) else f" the shards {', '.join(str(shard) for shard in shards)} of"
    those = "this parameter" if len(names) == 1 else f"these {len(names)} parameters"
    numbers = sum(plan.slots[name].numel for name in names)
    size = f"{numbers:,} number{'' if numbers == 1 else 's'}{' in all' if parts else ''}"
    norms = all(plan.slots[name].module.module_class == NORM for name in names)
    outcome = (
        "leaves them at one, and the draft was trained with others"
        if norms
        else "runs on what was in memory, and accepts no draft token"
    )
    return Finding(
        rule="unfilled-parameter",
        severity="error",
        engine=run.engine,
        subject=title(names),
        message=f"No tensor fills{parts} {those} ({size}): {run.engine} {outcome}.",
        hint=hint,
        subjects=tuple(names),
    )
