"""The finding of an engine that stops before it loads; no rule of its own."""

from collections.abc import Iterator

from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding
from dflash_audit.refusal import Stage


def stopped(run: EngineRun, stage: Stage, rule: str, subject: str, hint: str) -> Iterator[Finding]:
    """One finding if the engine stops at `stage`: what it says there, and what to do."""
    if run.refusal is None or run.refusal.stage != stage or run.refusal.pattern is not None:
        return  # where it hangs in a pattern, endless-pattern says so
    message = f"{run.engine} does not start with this draft: {run.refusal.reason.rstrip('.')}."
    yield Finding(rule, "error", run.engine, subject, message, elsewhere(run) or hint, (subject,))


def by_ranks(run: EngineRun) -> bool:
    """Whether it stops because a size of the draft does not go with the number of ranks."""
    return run.refusal is not None and run.refusal.reason.endswith(" ranks")


def elsewhere(run: EngineRun) -> str | None:
    """What to do about a draft that the engine has no code for, None where it has."""
    if run.unserved is None:
        return None
    lacking = f"{run.engine} serves no {run.unserved}"
    if run.served_by is None:
        return f"{lacking}, nor does another engine that this audit replays: train it as one that they serve."
    return f"{lacking}: serve it with {run.served_by}."
