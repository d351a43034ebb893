"""Two audits held against each other: what became of every verdict and of every finding's subjects."""

from dataclasses import replace
from typing import Any

import pytest
from formats.reports import audited, of, unreadable

from dflash_audit.finding import Finding, Severity, Waiver
from dflash_audit.gate.controls import Controls, Ignore
from dflash_audit.gate.waive import waive
from dflash_audit.publishing.before_after import compare
from dflash_audit.report import Report
from dflash_audit.verdict import Verdict


def found(
    *subjects: str,
    severity: Severity = "error",
    engine: str | None = "sglang-next",
    rule: str = "dropped-tensor",
    message: str = "It is dropped.",
    waived: Waiver | None = None,
) -> Finding:
    return Finding(rule, severity, engine, subjects[0], message, None, subjects[1:] and subjects, waived)


def kinds(before: Report, after: Report) -> dict[str, list[tuple[str, ...]]]:
    """What became of them -> the subjects of each finding."""
    told = compare(before, after).kinds
    return {kind: [each.subjects or (each.subject,) for each in listed] for kind, listed in told if listed}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([found("a")], [found("a")], {"stayed": [("a",)]}),
        ([found("a", message="Other words.")], [found("a")], {"stayed": [("a",)]}),
        ([], [found("a")], {"new": [("a",)]}),
        ([found("a")], [], {"gone": [("a",)]}),
        ([found("a")], [found("b")], {"new": [("b",)], "gone": [("a",)]}),
        ([found("a")], [found("a", engine="sglang-0.5.23")], {"new": [("a",)], "gone": [("a",)]}),
        ([found("a", severity="warning")], [found("a")], {"worse": [("a",)]}),
        ([found("a", severity="warning")], [found("a", severity="note")], {"better": [("a",)]}),
        ([found("a", "b")], [found("a", "b", "c")], {"new": [("c",)], "stayed": [("a", "b")]}),
        ([found("a", "b", "c")], [found("b", "c")], {"gone": [("a",)], "stayed": [("b", "c")]}),
        ([found("a", "b")], [found("a"), found("b")], {"stayed": [("a",), ("b",)]}),
        ([found("a"), found("a")], [found("a")], {"gone": [("a",)], "stayed": [("a",)]}),
        ([found("a", waived="ignored")], [found("a")], {"new": [("a",)]}),
        ([found("a")], [found("a", waived="known")], {"stayed": [("a",)]}),
    ],
)
def test_findings(before: list[Finding], after: list[Finding], expected: dict[str, Any]) -> None:
    assert kinds(of(*before), of(*after)) == expected


def test_a_part_keeps_what_is_said_and_has_a_title_of_its_own() -> None:
    layers = tuple(f"layers.{number}.a" for number in range(4))
    (new,) = compare(of(found(*layers[:2])), of(found(*layers))).new
    assert (new.subject, new.subjects, new.message) == ("layers.2-3.a", layers[2:], "It is dropped.")


def test_what_the_gate_ignores_is_in_none() -> None:
    controls = Controls(ignore=(Ignore("dropped-tensor"),))
    assert kinds(waive(of(found("a")), controls), waive(of(found("b")), controls)) == {}


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        ("pass", "pass", "same"),
        ("pass", "warn", "worse"),
        ("pass", "fail", "worse"),
        ("warn", "fail", "worse"),
        ("fail", "warn", "better"),
        ("warn", "pass", "better"),
        ("skipped", "pass", "changed"),
        ("fail", "skipped", "changed"),
        ("warn", "skipped", "worse"),
        ("skipped", "skipped", "same"),
    ],
)
def test_verdicts(before: Verdict, after: Verdict, change: str) -> None:
    told = compare(_with(before), _with(after)).engines
    assert {(each.before, each.after, each.change) for each in told} == {(before, after, change)}


def _with(verdict: Verdict) -> Report:
    """A report in which every engine has this verdict."""
    severity: dict[Verdict, Severity] = {"fail": "error", "warn": "warning"}
    report = audited()
    runs = tuple(
        replace(run, refusal=None, skipped="no" if verdict == "skipped" else None) for run in report.runs
    )
    findings = [
        found("a", severity=severity[verdict], engine=run.engine) for run in runs if verdict in severity
    ]
    return replace(report, runs=runs, findings=tuple(findings))


def test_nothing_before_and_nothing_after() -> None:
    report = _with("warn")
    assert {each.change for each in compare(unreadable(), report).engines} == {"new"}
    assert len(compare(unreadable(), report).new) == len(report.runs)
    lost = compare(report, unreadable())
    assert {(each.before, each.after, each.change) for each in lost.engines} == {("warn", None, "worse")}
    assert all(each.gating for each in lost.engines)
    assert lost.gone == ()
