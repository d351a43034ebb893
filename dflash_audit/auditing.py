"""An audit from source to report."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from dflash_audit.bounded_match import own_budget
from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.engines import DEFAULT, ENGINES, LIVE, engine
from dflash_audit.errors import Unreadable
from dflash_audit.facts import Facts
from dflash_audit.finding import FailOn
from dflash_audit.judge import judge
from dflash_audit.report import Report
from dflash_audit.several_sizes import AtSize, merged, merged_skips
from dflash_audit.sources.checkpoint import Checkpoint
from dflash_audit.sources.progress import waiting
from dflash_audit.sources.source import find_repo, origin, read_source

if TYPE_CHECKING:
    from dflash_audit.warmup.options import Options
    from dflash_audit.warmup.result import WarmUp


class Request(NamedTuple):
    """What to audit under which conditions.

    `ranks` are the tensor parallel sizes to audit, each once, in place of the
    conditions' own where there are any. `target` names the model that the draft is
    made for, None where it is not looked at; it becomes the conditions' own once it
    is read. `gating` are the names of the
    engines that decide, `revision` is one of the source's repo, `warmup` how to warm
    up what they decide on, None for not at all.
    An engine that is not a profile runs only if it is among `gating`.
    """

    source: str
    gating: frozenset[str] = frozenset((DEFAULT,))
    conditions: Conditions = Conditions()
    fail_on: FailOn = "error"
    revision: str | None = None
    target: str | None = None
    warmup: "Options | None" = None
    ranks: tuple[int, ...] = ()


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
        checkpoint, conditions = _read(request)
        runs = _replay(checkpoint, conditions, request.gating)
        others = [
            (each, _replay(checkpoint, each, request.gating))
            for each in (replace(conditions, tp=tp) for tp in request.ranks[1:])
        ]
    except Unreadable as unreadable:
        return Report(origin(request.source, request.revision), error=unreadable)
    warmups, error = _warm_up(request, conditions, checkpoint, runs)
    first = Facts(checkpoint, runs, request.gating, conditions, warmups or ())
    sizes = [judged(first)]
    sizes += [judged(Facts(checkpoint, of, request.gating, each)) for each, of in others]
    return Report(
        checkpoint.origin,
        checkpoint=checkpoint,
        runs=runs,
        gating=request.gating,
        findings=merged(sizes),
        skips=merged_skips(sizes),
        conditions=conditions,
        sizes=tuple(sizes),
        warmups=warmups,
        error=error,
        fail_on=request.fail_on,
    )


def judged(facts: Facts) -> AtSize:
    """What the rules say of one size, with a change for engines that disagree where one is found."""
    findings, skips = judge(facts)
    if any(finding.unmended for finding in findings):
        # Only here: an audit on which the engines agree does without.
        from dflash_audit.fixing.agreement import with_agreement

        findings = with_agreement(findings, facts)
    return AtSize(facts.conditions.tp, facts.runs, tuple(findings), tuple(skips))


def _read(request: Request) -> tuple[Checkpoint, Conditions]:
    """The checkpoint, and the conditions with the target that was named; raises `Unreadable`."""
    with _sign_of_life(request.source):
        checkpoint = read_source(request.source, request.revision)
    return checkpoint, with_target(request)


def with_target(request: Request) -> Conditions:
    """The conditions of the first size, with the target that was named; raises `Unreadable`."""
    conditions = replace(request.conditions, tp=request.ranks[0]) if request.ranks else request.conditions
    if request.target is None:
        return conditions
    # Only here: an audit without a target does without.
    from dflash_audit.target import read_target

    with _sign_of_life(request.target):
        return replace(conditions, target=read_target(request.target))


def target_read(request: Request) -> Request:
    """The request with its target read, for several audits that share it; raises `Unreadable`."""
    return request._replace(target=None, conditions=with_target(request))


def _sign_of_life(source: str) -> AbstractContextManager[None]:
    """A line while a repo takes long to read."""
    return nullcontext() if find_repo(source) is None else waiting(f"Reading {source} ...")


def _replay(checkpoint: Checkpoint, conditions: Conditions, gating: frozenset[str]) -> tuple[EngineRun, ...]:
    """Every engine's replay; a file beside the weights is read only once an engine asks for it."""
    remote = checkpoint.kind == "hub"
    with waiting(f"Reading {checkpoint.id} ...") if remote else nullcontext():
        names = (*ENGINES, *(name for name in LIVE if name in gating))
        return tuple(engine(name).replay(checkpoint, conditions) for name in names)


def _warm_up(
    request: Request, conditions: Conditions, checkpoint: Checkpoint, runs: tuple[EngineRun, ...]
) -> tuple[tuple["WarmUp", ...] | None, Unreadable | None]:
    """The warm-ups that were asked for, and what kept one from running."""
    if request.warmup is None:
        return None, None
    # Only here: an audit without a warm-up does without.
    from dflash_audit.warmup.each_engine import not_run, warm_up_engines

    gating = [run for run in runs if run.engine in request.gating]
    try:
        warmups = warm_up_engines(checkpoint, gating, conditions, request.warmup)
    except Unreadable as error:
        return (), error
    return warmups, not_run(warmups)
