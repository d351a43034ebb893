"""What a review tells a person, in words, before a format lays it out.

Nothing here is made safe to print.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from dflash_audit.finding import Finding
from dflash_audit.formats.outline import WORDS, tally
from dflash_audit.formats.told import Told, told
from dflash_audit.publishing.before_after import Change, Comparison, EngineChange, Kind
from dflash_audit.publishing.review import Review
from dflash_audit.report import Report
from dflash_audit.verdict import Verdict

CHANGES: Final[Mapping[Change, str]] = {
    "better": "better",
    "worse": "worse",
    "same": "as before",
    "changed": "changed",
    "new": "new",
}

HEADINGS: Final[Mapping[Kind, str]] = {
    "new": "New",
    "worse": "Worse than before",
    "gone": "Gone",
    "better": "Better than before",
    "stayed": "As before",
}


def verdict_words(verdict: Verdict | None) -> str:
    return "not audited" if verdict is None else WORDS[verdict]


def changed(comparison: Comparison) -> str:
    """What became of the engines that decide, in a word or two."""
    changes = {each.change for each in comparison.engines if each.gating}
    both = "better on one engine, worse on another" if {"better", "worse"} <= changes else None
    single = next((each for each in ("worse", "better", "changed", "new") if each in changes), "same")
    words = {"new": "nothing to compare it with", "same": "the verdict stays"}
    return both or words.get(single, single)


def ordered(engines: Sequence[EngineChange]) -> list[EngineChange]:
    """Those that decide come first."""
    return sorted(engines, key=lambda each: not each.gating)


def merged(findings: Sequence[Finding], comparison: Comparison) -> list[Told]:
    """The findings, those of several engines once."""
    return told(findings, [each.engine for each in ordered(comparison.engines)])


def counted(findings: Sequence[Finding], comparison: Comparison) -> str:
    """How many of each severity, whether the gate lets them pass or not."""
    plain = [replace(finding, waived=None) for finding in findings]
    return tally((each.finding.severity for each in merged(plain, comparison)), all_of_them=False)


def side(report: Report | None) -> str:
    """At which commit, or why nothing was audited."""
    if report is None:
        return "not audited"
    if report.error is not None:
        return f"not audited: {report.error.message}"
    return f"commit {report.origin.commit}"


def subject(done: Review) -> str:
    """Which pull request."""
    return f"{done.repo.name}, pull request {done.number}"
