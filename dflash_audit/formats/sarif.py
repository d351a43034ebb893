"""The report as SARIF 2.1.0, for code scanning and editors.

Source: OASIS "Static Analysis Results Interchange Format (SARIF) Version 2.1.0", and GitHub's
"SARIF support for code scanning" for what is shown of it.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from dflash_audit import __version__
from dflash_audit.finding import SEVERITIES, Finding, Severity, Waiver
from dflash_audit.fingerprint import fingerprints
from dflash_audit.formats.clean import clean
from dflash_audit.formats.json_text import json_text
from dflash_audit.formats.place import Places
from dflash_audit.formats.screen import Screen
from dflash_audit.report import Report
from dflash_audit.rules import page, title

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS: Final[dict[Severity, str]] = {"error": "error", "warning": "warning", "note": "note"}
PROBLEMS: Final[dict[Severity, str]] = {"error": "error", "warning": "warning", "note": "recommendation"}
"""A rule's `problem.severity`, by which GitHub sorts."""

SUPPRESSIONS: Final[dict[Waiver, str]] = {"known": "in the baseline", "ignored": "not selected, or ignored"}

PLACEHOLDER: Final = re.compile(r"\{(\d+)\}")


def render(report: Report, screen: Screen) -> str:
    """One log with one run."""
    del screen
    return json_text({"$schema": SCHEMA, "version": "2.1.0", "runs": [_run(report)]}, indent=1)


def _run(report: Report) -> dict[str, Any]:
    places = Places(report)
    rules = _rules(report)
    index = {rule["id"]: number for number, rule in enumerate(rules)}
    prints = fingerprints(report.findings, places.name)
    # Where one result of a run says what lets it pass, all of them must.
    suppressed = any(finding.waived is not None for finding in report.findings)
    return {
        "tool": {
            "driver": {
                "name": "dflash-audit",
                "version": __version__,
                "semanticVersion": __version__,
                "rules": rules,
            }
        },
        "automationDetails": {"id": f"dflash-audit/{_quoted(places.name)}/"},
        "invocations": [_invocation(report)],
        "results": [
            _result(report, finding, places, index[finding.rule], known)
            | (_suppressions(finding) if suppressed else {})
            for finding, known in zip(report.findings, prints, strict=True)
        ],
        "columnKind": "utf16CodeUnits",
        "properties": _properties(report),
    }


def _properties(report: Report) -> dict[str, Any]:
    origin = report.origin
    return {
        "source": clean(origin.id),
        "revision": origin.revision,
        "commit": origin.commit,
        "engines": [
            {"name": run.engine, "gating": run.engine in report.gating, "verdict": report.verdict(run)}
            for run in report.runs
        ],
    }


def _rules(report: Report) -> list[dict[str, Any]]:
    """Those that found something, in the order in which they did, under the worst severity that they gave."""
    worst: dict[str, Severity] = {}
    for finding in report.findings:
        so_far = worst.get(finding.rule, finding.severity)
        worst[finding.rule] = min(so_far, finding.severity, key=SEVERITIES.index)
    return [_rule(rule, severity) for rule, severity in worst.items()]


def _rule(rule: str, severity: Severity) -> dict[str, Any]:
    return {
        "id": rule,
        "name": rule.title().replace("-", ""),
        "shortDescription": {"text": _message(title(rule))},
        "fullDescription": {"text": _message(_introduction(rule))},
        "help": {"text": _message(page(rule)), "markdown": page(rule)},
        "defaultConfiguration": {"level": LEVELS[severity]},
        "properties": {"problem.severity": PROBLEMS[severity], "tags": ["dflash", "speculative-decoding"]},
    }


def _introduction(rule: str) -> str:
    """A page's text before its first section, without its heading."""
    return page(rule).partition("\n")[2].partition("\n## ")[0].strip()


def _invocation(report: Report) -> dict[str, Any]:
    """Whether the audit could look at all, and at what it did not look."""
    return {
        "executionSuccessful": report.error is None,
        "exitCode": report.exit_code,
        "toolExecutionNotifications": list(_notifications(report)),
    }


def _notifications(report: Report) -> Iterator[dict[str, Any]]:
    if report.error is not None:
        text = _message(clean(report.error.message))
        yield {"level": "error", "message": {"text": text}, "descriptor": {"id": report.error.kind}}
    for skip in report.skips:
        text = _message(f"{skip.rule} did not look: {clean(skip.reason)}")
        level = "error" if skip in report.failing_skips else "note"
        yield {"level": level, "message": {"text": text}, "descriptor": {"id": "skip"}}


def _result(report: Report, finding: Finding, places: Places, rule: int, known: str) -> dict[str, Any]:
    """A finding; one of an engine that does not decide is information and no failure."""
    lines = [f"{clean(finding.subject)}: {clean(finding.message)}"]
    lines += [f"Fix: {clean(finding.hint)}"] if finding.hint else []
    counts = report.decides(finding)
    return {
        "ruleId": finding.rule,
        "ruleIndex": rule,
        "kind": "fail" if counts else "informational",
        "level": LEVELS[finding.severity] if counts else "none",
        "message": {"text": _message("\n".join(lines))},
        "locations": [_location(finding, places)],
        # GitHub goes by the first name alone.
        "partialFingerprints": {"primaryLocationLineHash": known, "dflashAudit/v1": known},
        "properties": {"engine": finding.engine, "severity": finding.severity, "count": finding.count},
    }


def _suppressions(finding: Finding) -> dict[str, Any]:
    """What lets a finding pass."""
    why = finding.waived and SUPPRESSIONS[finding.waived]
    return {"suppressions": [{"kind": "external", "justification": why}] if why else []}


def _location(finding: Finding, places: Places) -> dict[str, Any]:
    place = places.of(finding)
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": _uri(places, place.file)},
            # GitHub asks for a line, also of a file that has none.
            "region": {"startLine": 1},
        },
        "logicalLocations": [{"fullyQualifiedName": clean(name), "kind": kind} for name, kind in place.names],
    }


def _uri(places: Places, file: str) -> str:
    """Relative to the checkout, as GitHub wants it; absolute for a folder elsewhere."""
    if places.local and not places.below_root:
        return Path(places.folder, file).resolve().as_uri()
    return _quoted(places.path(file))


def _quoted(path: str) -> str:
    return quote(path, errors="surrogateescape")


def _message(text: str) -> str:
    """A text in which a viewer finds neither a link (`[text](target)`) nor a placeholder (`{0}`)."""
    return PLACEHOLDER.sub(r"{{\1}}", text).replace("](", "] (")
