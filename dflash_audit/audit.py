"""An audit from source to report."""

from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dflash_audit.bounded_match import own_budget
from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.engines import DEFAULT, ENGINES, LIVE, engine
from dflash_audit.errors import Unreadable
from dflash_audit.facts import Facts
from dflash_audit.finding import FailOn
from dflash_audit.judge import judge
from dflash_audit.report import Report
from dflash_audit.sources.checkpoint import Checkpoint
from dflash_audit.sources.progress import waiting
from dflash_audit.sources.source import find_repo, origin, read_source

if TYPE_CHECKING:
    from dflash_audit.warmup.options import Options
    from dflash_audit.warmup.result import WarmUp


@dataclass(frozen=True, slots=True)
class Request:
    """What to audit under which conditions.

    `gating` are the names of the engines that decide, `revision` is one of the
    source's repo, `warmup` how to warm up what they decide on, None for not at all.
    An engine that is not a profile runs only if it is among `gating`.
    """

    source: str
    gating: frozenset[str] = frozenset((DEFAULT,))
    conditions: Conditions = field(default_factory=Conditions)
    fail_on: FailOn = "error"
    revision: str | None = None
    warmup: "Options | None" = None


def audit(request: Request) -> Report:
    """Audit one checkpoint. What keeps it from being read, or from being run, is the report's `error`."""
    try:
        with own_budget():
            return _audit(request)
    except (MemoryError, RecursionError) as error:
        # Whatever holds so much or is so deep: the limits of the readers leave no draft that is.
        told = "nested too deep" if isinstance(error, RecursionError) else "more than there is memory for"
        unreadable = Unreadable("too-large", request.source, told)
        return Report(origin(request.source, request.revision), error=unreadable)


def _audit(request: Request) -> Report:
    try:
        checkpoint, runs = _replay(request)
    except Unreadable as unreadable:
        return Report(origin(request.source, request.revision), error=unreadable)
    warmups, error = _warm_up(request, checkpoint, runs)
    findings, skips = judge(Facts(checkpoint, runs, request.gating, request.conditions, warmups or ()))
    return Report(
        checkpoint.origin,
        checkpoint=checkpoint,
        runs=runs,
        gating=request.gating,
        findings=tuple(findings),
        skips=tuple(skips),
        warmups=warmups,
        error=error,
        fail_on=request.fail_on,
    )


def _replay(request: Request) -> tuple[Checkpoint, tuple[EngineRun, ...]]:
    """The checkpoint and every engine's replay of it, with a sign of life while a repo takes long."""
    remote = find_repo(request.source) is not None
    with waiting(f"Reading {request.source} ...") if remote else nullcontext():
        checkpoint = read_source(request.source, request.revision)
        # A file beside the weights is read only once an engine asks for it.
        names = (*ENGINES, *(name for name in LIVE if name in request.gating))
        return checkpoint, tuple(engine(name).replay(checkpoint, request.conditions) for name in names)


def _warm_up(
    request: Request, checkpoint: Checkpoint, runs: tuple[EngineRun, ...]
) -> tuple[tuple["WarmUp", ...] | None, Unreadable | None]:
    """The warm-ups that were asked for, and what kept one from running."""
    if request.warmup is None:
        return None, None
    # Only here: an audit without a warm-up does without.
    from dflash_audit.warmup.each_engine import not_run, warm_up_engines

    gating = [run for run in runs if run.engine in request.gating]
    try:
        warmups = warm_up_engines(checkpoint, gating, request.conditions, request.warmup)
    except Unreadable as error:
        return (), error
    return warmups, not_run(warmups)
