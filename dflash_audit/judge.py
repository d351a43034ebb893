"""Every rule on the facts: what they find, and what they could not look at."""

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from dflash_audit.diagnosis.spelled import with_spelling
from dflash_audit.engine_run import EngineRun
from dflash_audit.facts import Facts
from dflash_audit.finding import Finding, Skip
from dflash_audit.rules import (
    CHECKPOINT_RULES,
    ENGINE_RULES,
    LAYOUT_RULES,
    RULES,
    SERVER_RULES,
    TARGET_RULES,
    WARMUP_RULES,
    finder,
)

if TYPE_CHECKING:
    from dflash_audit.warmup.result import WarmUp


def judge(facts: Facts) -> tuple[list[Finding], list[Skip]]:
    """The findings of all rules, and the rules that did not look at an engine, with the reason."""

    def on(run: EngineRun, only: Collection[str]) -> Iterator[Finding]:
        return engine_findings(run, facts, only)

    findings = [finding for run in facts.runs for finding in engine_findings(run, facts)]
    findings, change = with_spelling(findings, facts, on)
    facts = facts._replace(change=change)
    findings += [finding for warmup in facts.warmups for finding in _warmup_findings(warmup, facts)]
    across = [finding for rule in CHECKPOINT_RULES for finding in finder(rule)(facts, findings)]
    with_target = () if facts.conditions.target is None else TARGET_RULES
    skips = [
        Skip(rule, f"{run.engine}: {run.skipped}")
        for run in facts.runs
        if run.skipped
        for rule in (*ENGINE_RULES, *LAYOUT_RULES, *SERVER_RULES, *with_target)
    ]
    skips += [skip for warmup in facts.warmups for skip in _warmup_skips(warmup)]
    return findings + across, skips


def engine_findings(run: EngineRun, facts: Facts, only: Collection[str] = RULES) -> Iterator[Finding]:
    """What the rules find on one engine's run, before a spelling takes the place of hints."""
    if run.skipped is not None:
        return
    looked_at: list[tuple[Sequence[str], tuple[object, ...]]] = [
        (ENGINE_RULES, ()),
        (LAYOUT_RULES, (facts.checkpoint,)),
        (SERVER_RULES, (facts.checkpoint, facts.conditions)),
    ]
    if facts.conditions.target is not None:
        looked_at.append((TARGET_RULES, (facts.checkpoint, facts.conditions)))
    for rules, facts_of_rules in looked_at:
        for rule in rules:
            if rule in only:
                yield from finder(rule)(run, *facts_of_rules)


def _warmup_findings(warmup: "WarmUp", facts: Facts) -> Iterator[Finding]:
    if warmup.verdict == "skipped":
        return
    run = next(run for run in facts.runs if run.engine == warmup.engine)
    for rule in WARMUP_RULES:
        yield from finder(rule)(warmup, run)


def _warmup_skips(warmup: "WarmUp") -> Iterator[Skip]:
    """What a warm-up that did not run says nothing of, whether for its reason or the machine's."""
    reason = warmup.skipped
    if warmup.death is not None and not warmup.death.by_draft:
        reason = f"{warmup.death.kind}: {warmup.death.detail}"
    if reason is not None:
        for rule in WARMUP_RULES:
            yield Skip(rule, f"{warmup.engine}: {reason}")
