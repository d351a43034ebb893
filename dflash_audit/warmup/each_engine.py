"""The warm-up of every engine that gates, one after the other. Imports no torch."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.engines import LIVE, engine
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
from dflash_audit.warmup.yardstick import read_original, yardstick


def warm_up_engines(
    checkpoint: Checkpoint, runs: Sequence[EngineRun], conditions: Conditions, options: Options
) -> tuple[WarmUp, ...]:
    """One warm-up for each of `runs`, in their order; where there is nothing to run, the reason.

    Raises `Unreadable` where the weights of a repo cannot be downloaded, and where the
    draft to hold this one against cannot be read or is none for that. Both are read and
    downloaded only if something is to run, and before anything does.
    """
    plans = [_plan(run, conditions, options) for run in runs]
    if all(plan.skip for plan in plans):
        return tuple(_skipped(plan, options) for plan in plans)
    against = _against(plans, conditions, options)
    here = _Here(checkpoint.id, local_copy(checkpoint), conditions, options)
    return tuple(
        _skipped(plan, options)
        if plan.skip
        else _run(replace(_job(plan, here), against=against.get(plan.run.engine)), options)
        for plan in plans
    )


@dataclass(frozen=True, slots=True)
class _Plan:
    """What an engine's draft computes, or in `skip` why there is none that would run."""

    run: EngineRun
    forward: Forward | None
    skip: str | None = None


def _plan(run: EngineRun, conditions: Conditions, options: Options) -> _Plan:
    skip = _skip(run, conditions, options)
    try:
        return _Plan(run, None, skip) if skip else _Plan(run, engine(run.engine).forward(run))
    except NotModelled as unknown:
        return _Plan(run, None, unknown.reason)
    except Refused as refused:
        return _Plan(run, None, f"the engine stops before it would run ({refused.reason})")


def _skip(run: EngineRun, conditions: Conditions, options: Options) -> str | None:
    """Why the engine has no draft that would run; None where it has."""
    if run.skipped is not None:
        return run.skipped
    if run.refusal is not None:
        return f"the engine stops before it would run ({run.refusal.stage}: {run.refusal.reason})"
    if conditions.tp > 1:
        return f"the warm-up runs a draft of one rank, and --tp is {conditions.tp}"
    if options.against is not None and run.engine in LIVE:
        return "--against compares on the backend reference, which does not run a live engine's draft"
    return None


def _skipped(plan: _Plan, options: Options) -> WarmUp:
    return WarmUp(plan.run.engine, options.backend, options.device, options.dtype, skipped=plan.skip)


@dataclass(frozen=True, slots=True)
class _Here:
    """What all engines' warm-ups share: a draft's name and files, the server's options, the user's."""

    name: str
    folder: Path
    conditions: Conditions
    options: Options


def _against(plans: Sequence[_Plan], conditions: Conditions, options: Options) -> dict[str, Job]:
    """By engine, the draft to hold what is to run against; none where the user names none."""
    if options.against is None:
        return {}
    original = read_original(options.against)
    # The server's --quantization is the audited draft's alone.
    alone = replace(conditions, quantization=None)
    runs = {
        plan.run.engine: replace(plan, run=yardstick(original, plan.run.engine, plan.forward, alone))
        for plan in plans
        if plan.forward is not None
    }
    here = _Here(original.id, local_copy(original), alone, options)
    return {name: _job(plan, here) for name, plan in runs.items()}


def _job(plan: _Plan, here: _Here) -> Job:
    options, run = here.options, plan.run
    assert run.model_class is not None and run.tree is not None and run.plan is not None
    return Job(
        name=here.name,
        engine=run.engine,
        model_class=run.model_class,
        tree=run.tree,
        plan=run.plan,
        forward=plan.forward,
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
        provoked = warm_up(replace(job, provoke=True, against=None), options.timeout)
    return replace(warmed, provoked=provoked.death, survived=provoked.death is None)


def not_run(warmups: Sequence[WarmUp]) -> Unreadable | None:
    """What kept the machine from running a warm-up, of which nothing is known then."""
    for warmup in warmups:
        death = warmup.death
        if death is not None and not death.by_draft:
            told = f"the warm-up could not be run, {death.kind} in the stage {death.stage}: {death.detail}"
            return Unreadable(death.kind, warmup.engine, told)
    return None
