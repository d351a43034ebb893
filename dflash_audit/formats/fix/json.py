"""A repair as one JSON object, for programs."""

import json
from pathlib import Path
from typing import Any

from dflash_audit import __version__
from dflash_audit.finding import Finding
from dflash_audit.fixing.fix import Fix
from dflash_audit.formats.json_report import SCHEMA_VERSION
from dflash_audit.repairs.edit import ABSENT, Edit
from dflash_audit.report import Report


def render(fix: Fix) -> str:
    """One JSON object, on one line."""
    return json.dumps(document(fix), ensure_ascii=True, separators=(",", ":"), allow_nan=False)


def schema() -> str:
    """The JSON Schema of such an object, as the package carries it."""
    return Path(__file__).with_suffix(".schema.json").read_text(encoding="utf-8").rstrip()


def document(fix: Fix) -> dict[str, Any]:
    """The object; a key of an edit that is not there before or after is left out of it."""
    report, last = fix.before, fix.after or fix.before
    error = fix.error or report.error
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "dflash-audit", "version": __version__},
        "source": {
            "kind": report.origin.kind,
            "id": report.origin.id,
            "revision": report.origin.revision,
            "commit": report.origin.commit,
        },
        "outcome": fix.outcome if error is None else None,
        "gating": sorted(report.gating),
        "edits": [_edit(each) for each in fix.edits],
        "diff": fix.diff,
        "before": _verdicts(report),
        "after": _verdicts(fix.after) if fix.after else None,
        "left": [_finding(finding) for finding in left(last)],
        "harms": [{"engine": engine, "what": what} for engine, what in fix.harms],
        "recipe": fix.recipe.text if fix.recipe else None,
        "reason": fix.reason,
        "written": None if fix.backup is None else {"backup": str(fix.backup)},
        "error": None if error is None else {"kind": error.kind, "message": error.message},
        "exit_code": fix.exit_code,
    }


def left(report: Report) -> list[Finding]:
    """The findings that count, an error or a warning."""
    return [f for f in report.findings if report.counts_in_summary(f) and f.severity != "note"]


def _verdicts(report: Report) -> dict[str, str]:
    return {run.engine: report.verdict(run) for run in report.runs}


def _edit(edit: Edit) -> dict[str, Any]:
    values = {"old": edit.old, "new": edit.new}
    return {
        "path": list(edit.path),
        # NaN, which is no JSON, as text.
        **{n: json.loads(json.dumps(v), parse_constant=str) for n, v in values.items() if v is not ABSENT},
        "why": edit.why,
        "doubt": edit.doubt,
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "severity": finding.severity,
        "engine": finding.engine,
        "subject": finding.subject,
        "message": finding.message,
        "hint": finding.hint,
    }
