"""The draft passes on the engines that gate, and fails on another one.

## Why it matters

Users of that version meet the failure: most often with the release that they run today, while the
checkpoint was made for the next one.

## Example

Before, spelled for the next release alone:

    "ignore": ["re:.*gate_proj$", "re:.*up_proj$"]

After, spelled for both:

    "ignore": ["re:.*gate_proj$", "re:.*up_proj$", "re:.*gate_up_proj$"]

## How to fix

Change the layout so that every engine serves it, or name the version that it needs in the model card.
`--engine all` makes every engine decide.

A release that a later one has followed (`sglang-0.5.19`) is no reason for this warning: its verdict stands
beside the others, and tells from which version on the draft serves.
"""

from collections.abc import Iterator, Sequence

from dflash_audit.engines import SUPERSEDED
from dflash_audit.facts import Facts
from dflash_audit.finding import Finding
from dflash_audit.verdict import verdict


def find(facts: Facts, findings: Sequence[Finding]) -> Iterator[Finding]:
    """One finding for all engines that fail where the gating ones do not."""
    verdicts = {run.engine: verdict(run, findings) for run in facts.runs}
    if any(verdicts[engine] in ("fail", "skipped") for engine in facts.gating):
        return
    failing = [engine for engine, said in verdicts.items() if said == "fail" and engine not in SUPERSEDED]
    if failing:
        whys = "; ".join(f"{engine} fails: {_first_error(engine, findings)}" for engine in failing)
        yield Finding(
            rule="engines-disagree",
            severity="warning",
            engine=None,
            subject=", ".join(failing),
            message=f"The draft passes on {', '.join(sorted(facts.gating))}, but {whys}",
            hint="Name the version in the model card, or change the layout so that every engine serves it.",
        )


def _first_error(engine: str, findings: Sequence[Finding]) -> str:
    first = next(f for f in findings if f.engine == engine and f.severity == "error")
    return f"{first.rule} on {first.subject}."
