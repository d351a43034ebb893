"""The report as JUnit XML: a suite an engine that decides, a test case a rule."""

import re
from collections.abc import Iterable, Sequence
from typing import Final
from xml.etree import ElementTree as ET

from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding
from dflash_audit.formats.clean import clean
from dflash_audit.formats.place import Places
from dflash_audit.formats.screen import Screen
from dflash_audit.report import Report
from dflash_audit.rules import CHECKPOINT_RULES, ENGINE_RULES, LAYOUT_RULES, SERVER_RULES, WARMUP_RULES

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
    return (*ENGINE_RULES, *LAYOUT_RULES, *SERVER_RULES, *(WARMUP_RULES if report.warmups else ()))


def _case(report: Report, classname: str, run: EngineRun | None, rule: str) -> ET.Element:
    case = ET.Element("testcase", classname=classname, name=rule)
    engine = run.engine if run else None
    found = [finding for finding in report.of_engine(engine) if finding.rule == rule]
    failing = [finding for finding in found if finding.severity in report.failing]
    reason = _skipped(report, engine, rule)
    if failing:
        first = failing[0]
        told = f"{clean(first.subject)}: {clean(first.message)}"
        failure = ET.SubElement(case, "failure", type=first.severity, message=told)
        failure.text = _text(failing)
    elif reason is not None:
        ET.SubElement(case, "skipped", message=clean(reason))
    if others := [finding for finding in found if finding not in failing]:
        ET.SubElement(case, "system-out").text = _text(others)
    return case


def _skipped(report: Report, engine: str | None, rule: str) -> str | None:
    """Why a rule did not look at an engine; a skip begins with the engine's name."""
    reasons = (skip.reason for skip in report.skips if skip.rule == rule)
    start = f"{engine}: "
    return next((reason.removeprefix(start) for reason in reasons if reason.startswith(start)), None)


def _text(findings: Sequence[Finding]) -> str:
    lines = []
    for finding in findings:
        lines += [f"{finding.severity}: {clean(finding.subject)}", clean(finding.message)]
        lines += [f"fix: {clean(finding.hint)}"] if finding.hint else []
    # At the start of a line GitHub would take `::` for a command.
    return LINE_COMMAND.sub(r"\\x3a:", "\n".join(lines))
