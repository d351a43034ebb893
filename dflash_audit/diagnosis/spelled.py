"""Hints that a spelling of the ignore list takes the place of; no rule of its own."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from dflash_audit.engine_run import EngineRun
from dflash_audit.engines import SUPERSEDED
from dflash_audit.facts import Facts, ListChange
from dflash_audit.finding import Finding
from dflash_audit.rules import RULES

MENDED: Final = frozenset(
    (
        "dead-ignore-entry",
        "dead-target-entry",
        "dropped-tensor",
        "lossy-cast",
        "refused-build",
        "refused-load",
        "unfilled-parameter",
        "unread-packed-mapping",
        "wrong-ignore-entry",
    )
)
"""Rules whose findings another list may mend."""

OTHERS: Final = frozenset(RULES) - MENDED

Judge = Callable[[EngineRun, Collection[str]], Iterable[Finding]]


def with_spelling(
    findings: Sequence[Finding], facts: Facts, judge: Judge
) -> tuple[list[Finding], ListChange | None]:
    """The findings, where those that are gone under the spelled list say that list for a hint; and the list.

    `judge` gives what some of the rules find on an engine's replay with that list.
    """
    if not any(finding.rule in MENDED for finding in findings):
        return [*findings], None
    # Only here: most audits find nothing to spell and do without the import.
    from dflash_audit.diagnosis.spelling import spelled

    runs = [run for run in facts.runs if run.engine not in SUPERSEDED or run.engine in facts.gating]
    spelling = spelled(facts.checkpoint, runs, facts.conditions)
    if spelling is None:
        return [*findings], None
    replayed: set[str] = set()
    left: set[tuple[str, str | None, str]] = set()
    serve: set[str] = set()
    for run in spelling.on_all_tensors():
        replayed.add(run.engine)
        found = [*judge(run, MENDED)]
        left.update(map(_key, found))
        # The other rules are asked only where these leave no error.
        if all(finding.severity != "error" for finding in chain(found, judge(run, OTHERS))):
            serve.add(run.engine)
    advice = spelling.advice()
    mended = [
        replace(finding, hint=advice)
        if finding.rule in MENDED and finding.engine in replayed and _key(finding) not in left
        else finding
        for finding in findings
    ]
    return mended, ListChange(advice, frozenset(serve))


def _key(finding: Finding) -> tuple[str, str | None, str]:
    return finding.rule, finding.engine, finding.subject
