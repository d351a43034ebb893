"""The findings that count as GitLab's Code Quality report, which its merge requests show.

Source: GitLab's "Code Quality report format": equal fingerprints are one, paths are relative to the checkout.
"""

from typing import Final

from dflash_audit.finding import Finding, Severity
from dflash_audit.fingerprint import fingerprints
from dflash_audit.formats.clean import clean
from dflash_audit.formats.json_text import json_text
from dflash_audit.formats.place import Places
from dflash_audit.formats.screen import Screen
from dflash_audit.report import Report
from dflash_audit.sources.checkpoint import CONFIG

SEVERITIES: Final[dict[Severity, str]] = {"error": "critical", "warning": "minor", "note": "info"}


def render(report: Report, screen: Screen) -> str:
    """A list with an entry a finding; where the audit could not look or not judge, an entry says so."""
    del screen
    places = Places(report)
    counted = [finding for finding in report.findings if report.counts_in_summary(finding)]
    entries = [
        (SEVERITIES[finding.severity], finding, _text(finding), places.of(finding).file)
        for finding in counted
    ]
    for run in report.runs:
        if run.engine in report.gating and run.skipped is not None:
            told = f"Not judged on {run.engine}, which is no pass: {clean(run.skipped)}"
            if f"{run.engine}: {run.skipped}" not in report.strict_reasons:
                entries.append(("minor", _note("not-judged", run.engine), told, CONFIG))
    for reason in report.strict_reasons:
        note = _note("not-judged", reason.partition(": ")[0])
        entries.append(("critical", note, f"Not judged, which --strict fails: {clean(reason)}", CONFIG))
    if report.error is not None:
        entries.append(("blocker", _note(report.error.kind, None), clean(report.error.message), CONFIG))
    known = fingerprints((finding for _, finding, _, _ in entries), places.name)
    return json_text(
        [
            {
                "description": text,
                "check_name": finding.rule,
                "fingerprint": fingerprint,
                "severity": severity,
                "location": {"path": clean(places.path(file)), "lines": {"begin": 1}},
            }
            for (severity, finding, text, file), fingerprint in zip(entries, known, strict=True)
        ],
        indent=1,
    )


def _note(kind: str, engine: str | None) -> Finding:
    """What the audit says of itself, as far as its fingerprint goes."""
    return Finding(kind, "error", engine, "the audit", "")


def _text(finding: Finding) -> str:
    on = f" on {finding.engine}" if finding.engine else ""
    fix = f" Fix: {clean(finding.hint)}" if finding.hint else ""
    return f"{finding.rule}{on}: {clean(finding.subject)}: {clean(finding.message)}{fix}"
