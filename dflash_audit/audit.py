"""An audit from source to report."""

from dataclasses import dataclass, field

from dflash_audit.engine_run import Conditions
from dflash_audit.engines import DEFAULT, ENGINES, LIVE, engine
from dflash_audit.errors import Unreadable
from dflash_audit.facts import Facts
from dflash_audit.finding import Severity
from dflash_audit.judge import judge
from dflash_audit.report import Report
from dflash_audit.sources.source import origin, read_source


@dataclass(frozen=True, slots=True)
class Request:
    """What to audit under which conditions.

    `gating` are the names of the engines that decide, `revision` is one of the source's repo.
    An engine that is not a profile runs only if it is among `gating`.
    """

    source: str
    gating: frozenset[str] = frozenset((DEFAULT,))
    conditions: Conditions = field(default_factory=Conditions)
    fail_on: Severity = "error"
    revision: str | None = None


def audit(request: Request) -> Report:
    """Audit one checkpoint. A source that cannot be read is the report's `error`."""
    try:
        checkpoint = read_source(request.source, request.revision)
        # A file beside the weights is read only once an engine asks for it.
        names = (*ENGINES, *(name for name in LIVE if name in request.gating))
        runs = tuple(engine(name).replay(checkpoint, request.conditions) for name in names)
    except Unreadable as error:
        return Report(origin(request.source, request.revision), error=error)
    findings, skips = judge(Facts(checkpoint, runs, request.gating, request.conditions))
    return Report(
        checkpoint.origin,
        checkpoint=checkpoint,
        runs=runs,
        gating=request.gating,
        findings=tuple(findings),
        skips=tuple(skips),
        fail_on=request.fail_on,
    )
