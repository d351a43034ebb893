"""A tensor goes nowhere, and may: the engine has its own, or does not use it."""

from collections.abc import Iterator

from dflash_audit.drops import ignored
from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding


def find(run: EngineRun) -> Iterator[Finding]:
    """One finding a reason."""
    reasons: dict[str, list[str]] = {}
    for tensor, reason in ignored(run):
        reasons.setdefault(reason, []).append(tensor.name)
    for reason, names in reasons.items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        yield Finding(
            rule="ignored-tensor",
            severity="note",
            engine=run.engine,
            subject=names[0] + more,
            message=f"{run.engine} does not load it: {reason}.",
            hint=None,
            subjects=tuple(names),
        )
