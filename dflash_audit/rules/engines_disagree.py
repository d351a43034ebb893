"""The draft passes on the engines that gate, and fails on another one.

## Why it matters

Users of that engine meet the failure: most often with the release that they run today, while the
checkpoint was made for the next one, or for the other server.

A note, not a warning, where the other engine has no such drafts at all, whatever the layout: nothing in the
checkpoint is at fault then.

## Example

Before, spelled for the next release alone:

    "ignore": ["re:.*gate_proj$", "re:.*up_proj$"]

After, spelled for all:

    "ignore": ["re:.*gate_proj$", "re:.*up_proj$", "re:.*gate_up_proj$"]

## How to fix

Change the layout so that every engine serves it, or name the version that it needs in the model card.
`--engine all` makes every engine decide.

A release that a later one has followed (`sglang-0.5.19`) is no reason for this warning: its verdict stands
beside the others, and tells from which version on the draft serves.
"""

from collections.abc import Iterator, Sequence

from dflash_audit.engine_run import EngineRun
from dflash_audit.engines import SUPERSEDED
from dflash_audit.facts import Facts
from dflash_audit.finding import Finding
from dflash_audit.verdict import verdict

HINT = "Name the version in the model card, or change the layout so that every engine serves it."


def find(facts: Facts, findings: Sequence[Finding]) -> Iterator[Finding]:
    """One finding for all engines that fail where the gating ones do not."""
    verdicts = {run.engine: verdict(run, findings) for run in facts.runs}
    if any(verdicts[engine] in ("fail", "skipped") for engine in facts.gating):
        return
    failing = [run for run in facts.runs if verdicts[run.engine] == "fail" and run.engine not in SUPERSEDED]
    if not failing:
        return
    # What an engine has no code for is no fault of the layout, and nothing to mend.
    faulty = [run for run in failing if run.unserved is None]
    whys = "; ".join(_why(run, findings) for run in failing)
    yield Finding(
        rule="engines-disagree",
        severity="warning" if faulty else "note",
        engine=None,
        subject=", ".join(run.engine for run in failing),
        message=f"The draft passes on {', '.join(sorted(facts.gating))}, but {whys}.",
        hint=HINT if faulty else "Name the engine that it is for in the model card.",
    )


def _why(run: EngineRun, findings: Sequence[Finding]) -> str:
    if run.unserved is not None:
        return f"{run.engine} serves no {run.unserved}"
    first = next(f for f in findings if f.engine == run.engine and f.severity == "error")
    return f"{run.engine} fails: {first.rule} on {first.subject}"
