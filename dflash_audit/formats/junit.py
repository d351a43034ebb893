"""The report as JUnit XML: a suite an engine that decides, a test case a rule."""

import re
from collections.abc import Iterable, Sequence
from typing import Final
from xml.etree import ElementTree as ET

from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding, Skip
from dflash_audit.formats.clean import clean
from dflash_audit.formats.place import Places
from dflash_audit.formats.screen import Screen
from dflash_audit.report import Report
from dflash_audit.rules import (
    CHECKPOINT_RULES,
    ENGINE_RULES,
    LAYOUT_RULES,
    SERVER_RULES,
    TARGET_RULES,
    WARMUP_RULES,
)

COUNTED: Final = {"failures": "failure", "errors": "error", "skipped": "skipped"}
"""A suite's attribute -> the element of a test case that it counts."""

LINE_COMMAND: Final = re.compile(r"^::", flags=re.MULTILINE)


def render(report: Report, screen: Screen) -> str:
    """One document; what the audit could not look at is an error, a rule that did not look is skipped."""
    del screen
    name = clean(Places(report).name)
    root = ET.Element("testsuites", name="dflash-audit")
    for run in report.runs:
        if run.engine in report.gating:
            cases = [_case(report, f"{name} on {run.engine}", run, rule) for rule in _rules(report)]
            _add(root, run.engine, cases)
    if report.checkpoint is not None:
        _add(root, "all engines", [_case(report, name, None, rule) for rule in CHECKPOINT_RULES])
    if report.error is not None:
        case = ET.Element("testcase", classname=name, name="audit")
        told = clean(report.error.message)
        ET.SubElement(case, "error", type=report.error.kind, message=told).text = told
        _add(root, "audit", [case])
    _count(root)
    ET.indent(root)
    text: bytes = ET.tostring(root, encoding="us-ascii", xml_declaration=True)
    return text.decode("ascii")


def _add(root: ET.Element, name: str, cases: Iterable[ET.Element]) -> None:
    suite = ET.SubElement(root, "testsuite", name=name)
    suite.extend(cases)
    _count(suite)


def _count(suite: ET.Element) -> None:
    suite.set("tests", str(len([*suite.iter("testcase")])))
    for attribute, element in COUNTED.items():
        suite.set(attribute, str(len([*suite.iter(element)])))


def _rules(report: Report) -> tuple[str, ...]:
    """The rules that look at an engine, those of the warm-up where there was one."""
    with_target = TARGET_RULES if report.conditions.target is not None else ()
    with_warmup = WARMUP_RULES if report.warmups else ()
    return (*ENGINE_RULES, *LAYOUT_RULES, *SERVER_RULES, *with_target, *with_warmup)


def _case(report: Report, classname: str, run: EngineRun | None, rule: str) -> ET.Element:
    case = ET.Element("testcase", classname=classname, name=rule)
    engine = run.engine if run else None
    found = [finding for finding in report.of_engine(engine) if finding.rule == rule]
    failing = [f for f in found if f.severity in report.failing and f.waived is None]
    skip = _skipped(report, engine, rule)
    if failing:
        first = failing[0]
        told = f"{clean(first.subject)}: {clean(first.message)}"
        failure = ET.SubElement(case, "failure", type=first.severity, message=told)
        failure.text = _text(failing)
    elif skip is not None:
        fails = skip in report.failing_skips
        told = clean(skip.reason.removeprefix(f"{engine}: "))
        element = ET.SubElement(case, "failure", type="skip") if fails else ET.SubElement(case, "skipped")
        element.set("message", told)
    if others := [finding for finding in found if finding not in failing]:
        ET.SubElement(case, "system-out").text = _text(others)
    return case


def _skipped(report: Report, engine: str | None, rule: str) -> Skip | None:
    """That a rule did not look at an engine; a skip's reason begins with the engine's name."""
    start = f"{engine}: "
    return next((s for s in report.skips if s.rule == rule and s.reason.startswith(start)), None)


def _text(findings: Sequence[Finding]) -> str:
    lines = []
    for finding in findings:
        waived = f" ({finding.waived})" if finding.waived else ""
        lines += [f"{finding.severity}{waived}: {clean(finding.subject)}", clean(finding.message)]
        lines += [f"fix: {clean(finding.hint)}"] if finding.hint else []
    # At the start of a line GitHub would take `::` for a command.
    return LINE_COMMAND.sub(r"\\x3a:", "\n".join(lines))
