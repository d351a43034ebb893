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

The finding names the smallest change with which the engines that gate and those that fail serve the draft, if
one was found: another ignore list, other keys of config.json, or the same tensors in another layout. It was
replayed on each engine that it names; `dflash-audit fix SOURCE --engine all` writes the ones of config.json.
Where none is named, change the layout so that every engine serves it, or name the version that it needs in
the model card. `--engine all` makes every engine decide.

Where an engine fails over the target that stands beside the draft (`target-class` and the like), no layout is
at fault: another target, or another engine for this one.

A release that a later one has followed (`sglang-0.5.19`) is no reason for this warning: its verdict stands
beside the others, and tells from which version on the draft serves.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from dflash_audit.engine_run import EngineRun
from dflash_audit.engines import SUPERSEDED
from dflash_audit.facts import Facts
from dflash_audit.finding import Finding
from dflash_audit.fold import enumerated
from dflash_audit.rules import TARGET_RULES
from dflash_audit.verdict import verdict

HINT: Final = "Name the version in the model card, or change the layout so that every engine serves it."
TARGET: Final = (
    "It is the target, and no layout of the draft mends that: name in the model card which engine serves the"
    " draft beside this target."
)
NO_LIST: Final = (
    "No ignore list makes them all serve it as it is stored: name the version in the model card, or quantize"
    " again."
)


def find(facts: Facts, findings: Sequence[Finding]) -> Iterator[Finding]:
    """One finding for all engines that fail where the gating ones do not."""
    verdicts = {run.engine: verdict(run, findings) for run in facts.runs}
    if any(verdicts[engine] in ("fail", "skipped") for engine in facts.gating):
        return
    failing = [run for run in facts.runs if verdicts[run.engine] == "fail" and run.engine not in SUPERSEDED]
    if not failing:
        return
    # What an engine has no code for is no fault of the layout, and nothing to mend.
    served = [run for run in failing if run.unserved is None]
    faulty = [run for run in served if not _by_target(run, findings)]
    whys = "; ".join(_whys(failing, findings))
    yield Finding(
        rule="engines-disagree",
        severity="warning" if served else "note",
        engine=None,
        subject=", ".join(run.engine for run in failing),
        message=f"The draft passes on {enumerated(sorted(facts.gating))}, but {whys}.",
        hint=_hint(facts, faulty) if faulty or not served else TARGET,
        unmended=() if _listed(facts, faulty) else tuple(run.engine for run in faulty),
    )


def _by_target(run: EngineRun, findings: Sequence[Finding]) -> bool:
    """Whether the engine fails over the target alone."""
    errors = [each for each in findings if each.engine == run.engine and each.severity == "error"]
    return bool(errors) and all(each.rule in TARGET_RULES for each in errors)


def _hint(facts: Facts, faulty: Sequence[EngineRun]) -> str:
    """The list that mends some of them, where one does; what it leaves it says itself."""
    if not faulty:
        return "Name the engine that it is for in the model card."
    if facts.change is None:
        return HINT
    return facts.change.advice if _listed(facts, faulty) else NO_LIST


def _listed(facts: Facts, faulty: Sequence[EngineRun]) -> bool:
    """Whether an ignore list mends some of them."""
    return facts.change is not None and any(run.engine in facts.change.serve for run in faulty)


def _whys(failing: Sequence[EngineRun], findings: Sequence[Finding]) -> Iterator[str]:
    """Why each fails, engines that fail alike in one."""
    alike: dict[tuple[str, str, str], list[str]] = {}
    for run in failing:
        alike.setdefault(_why(run, findings), []).append(run.engine)
    for (one, many, why), engines in alike.items():
        yield f"{enumerated(engines)} {one if len(engines) == 1 else many} {why}"


def _why(run: EngineRun, findings: Sequence[Finding]) -> tuple[str, str, str]:
    """The verb for one engine, the one for several, and the rest of the sentence."""
    if run.unserved is not None:
        return "serves", "serve", f"no {run.unserved}"
    first = next(f for f in findings if f.engine == run.engine and f.severity == "error")
    return "fails:", "fail:", f"{first.rule} on {first.subject}"
