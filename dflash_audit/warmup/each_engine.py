"""The warm-up of every engine that gates, one after the other. Imports no torch."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.engines import engine
from dflash_audit.errors import Unreadable
from dflash_audit.forward import Forward
from dflash_audit.refusal import NotModelled, Refused
from dflash_audit.sources.checkpoint import Checkpoint
from dflash_audit.sources.local_copy import local_copy
from dflash_audit.sources.progress import waiting
from dflash_audit.warmup.isolation import warm_up
from dflash_audit.warmup.job import Job
from dflash_audit.warmup.options import Options
from dflash_audit.warmup.result import WarmUp


def warm_up_engines(
    checkpoint: Checkpoint, runs: Sequence[EngineRun], conditions: Conditions, options: Options
) -> tuple[WarmUp, ...]:
    """One warm-up for each of `runs`, in their order; where there is nothing to run, the reason.

    Raises `Unreadable` where the weights of a repo cannot be downloaded. They are
    downloaded only if something is to run.
    """
    skips = {run.engine: _skip(run, conditions) for run in runs}
    folder = Path() if all(skips.values()) else local_copy(checkpoint)
    here = _Here(checkpoint.id, folder, conditions, options)
    return tuple(_warm_up(run, skips[run.engine], here) for run in runs)


def _skip(run: EngineRun, conditions: Conditions) -> str | None:
    """Why the engine has no draft that would run; None where it has."""
    if run.skipped is not None:
        return run.skipped
    if run.refusal is not None:
        return f"the engine stops before it would run ({run.refusal.stage}: {run.refusal.reason})"
    if conditions.tp > 1:
        return f"the warm-up runs a draft of one rank, and --tp is {conditions.tp}"
    return None


@dataclass(frozen=True, slots=True)
class _Here:
    """What all engines' warm-ups share: the checkpoint's name and files, the server's options, the user's."""

    name: str
    folder: Path
    conditions: Conditions
    options: Options


def _warm_up(run: EngineRun, skip: str | None, here: _Here) -> WarmUp:
    options = here.options
    try:
        if skip is None:
            return _run(_job(run, engine(run.engine).forward(run), here), options)
    except NotModelled as unknown:
        skip = unknown.reason
    except Refused as refused:
        skip = f"the engine stops before it would run ({refused.reason})"
    return WarmUp(run.engine, options.backend, options.device, options.dtype, skipped=skip)


def _job(run: EngineRun, forward: Forward, here: _Here) -> Job:
    options = here.options
    assert run.model_class is not None and run.tree is not None and run.plan is not None
    return Job(
        name=here.name,
        engine=run.engine,
        model_class=run.model_class,
        tree=run.tree,
        plan=run.plan,
        forward=forward,
        folder=here.folder,
        device=options.device,
        dtype=options.dtype,
        backend=options.backend,
        blocks=options.blocks,
        context=options.context,
        seed=options.seed,
        quantization=here.conditions.quantization,
        attention_backend=here.conditions.attention_backend,
    )


def _run(job: Job, options: Options) -> WarmUp:
    """Run a job; where the user asks for it and the draft lives, once more with an id out of range."""
    with waiting(f"Warming up {job.engine} ..."):
        warmed = warm_up(job, options.timeout)
        if not options.provoke or warmed.death is not None or warmed.skipped is not None:
            return warmed
        provoked = warm_up(replace(job, provoke=True), options.timeout)
    return replace(warmed, provoked=provoked.death, survived=provoked.death is None)


def not_run(warmups: Sequence[WarmUp]) -> Unreadable | None:
    """What kept the machine from running a warm-up, of which nothing is known then."""
    for warmup in warmups:
        death = warmup.death
        if death is not None and not death.by_draft:
            told = f"the warm-up could not be run, {death.kind} in the stage {death.stage}: {death.detail}"
            return Unreadable(death.kind, warmup.engine, told)
    return None
