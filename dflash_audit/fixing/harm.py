"""What an engine does to a checkpoint without a word: the harm that no repair may bring."""

from dflash_audit.drops import excuses
from dflash_audit.engine_run import EngineRun
from dflash_audit.facts import Facts
from dflash_audit.rules import finder


def brought(before: Facts, after: Facts) -> list[tuple[str, str]]:
    """(engine, harm) of all that an engine does after a change and did not do before it."""
    old = {run.engine: harm(run) for run in before.runs}
    return [(run.engine, each) for run in after.runs for each in sorted(harm(run) - old[run.engine])]


def harm(run: EngineRun) -> frozenset[str]:
    """Tensors that go nowhere, parameters that stay unfilled or are resized, casts that lose the meaning.

    Nothing of an engine that stops before it loads. What a load refuses counts as if it went on.
    """
    plan = run.plan
    if plan is None:
        return frozenset()
    lost = {f"drops {t.name}" for t in plan.tensors if t not in plan.fills and t not in excuses(run)}
    missing = {f"leaves {name} unfilled" for name in plan.missing()}
    resized = {f"resizes {name}" for found in finder("resized-parameter")(run) for name in found.subjects}
    lossy = {
        f"casts {tensor.name}" for tensor, fills in plan.fills.items() if any(fill.lossy for fill in fills)
    }
    return frozenset(lost | missing | resized | lossy)
