"""A parameter took in another amount of numbers than it holds, without an objection.

The engine takes the first rows of a tensor that is too long, and pads one that is too short with zeros.
What does so in every good load (a vocabulary that is padded, a scale that stands for all shards) is not
counted. A parameter for which two tensors come, with `model.` before the name and without, is.

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
tensors. Of two tensors under one name keep the draft's.
"""

from collections.abc import Callable, Iterator
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
        message, hint = _told(plan, odd[names[0]])
        yield Finding(
            rule="resized-parameter",
            severity="error",
            engine=run.engine,
            subject=subject,
            message=message,
            hint=hint or scheme_hint(names) or SIZES,
            subjects=names,
        )


def _told(plan: LoadPlan, resized: Resized) -> tuple[str, str | None]:
    """What happened to the parameter, and what to do if that tells it."""
    slot, whole = resized.slot, resized.slot.whole
    once = _once(plan, slot, lambda name: name.removeprefix("model."))
    if once != _once(plan, slot) and (once == whole or _is_padded(slot, once)):
        return "Two tensors go into it, with model. before the name and without: the last one counts.", TWINS
    verb = "cut down to" if resized.took > whole else "padded with zeros to"
    return f"{resized.took:,} numbers were {verb} the {whole:,} that it holds, in silence.", None


TWINS: Final = "Keep the tensor that belongs to the draft, and remove the other."
SIZES: Final = "Set the sizes in config.json (heads, head_dim, intermediate_size) to those of the tensors."


def _by_design(plan: LoadPlan, resized: Resized) -> bool:
    """Whether a parameter takes another amount in every good load.

    A group index comes whole with each shard, one scale may stand for all
    shards of a fused layer, a vocabulary is padded, and a tensor that is in two
    files is loaded twice.
    """
    slot = resized.slot
    once = _once(plan, slot)
    if once == slot.whole or _is_padded(slot, once):
        return True
    if slot.parameter.name.endswith("g_idx"):
        return True
    placement = slot.parameter.placement
    return placement.kind is Kind.TENSOR_SCALE and plan.filled()[slot.name] == {None} and resized.took == 1


def _is_padded(slot: Slot, took: int) -> bool:
    """Whether a parameter of the vocabulary took a row for each token, and no more."""
    tokens = slot.parameter.placement.tokens
    return (
        slot.parameter.placement.kind is Kind.VOCABULARY
        and tokens is not None
        and took == tokens * slot.parameter.shape[1]
    )


def _once(plan: LoadPlan, slot: Slot, name_of: Callable[[str], str] = str) -> int:
    """How many numbers a parameter takes in if each tensor's name counts once."""
    took = {
        (name_of(t.name), fill.shard): t.numel
        for t, fills in plan.fills.items()
        for fill in fills
        if fill.slot is slot
    }
    return sum(took.values())
