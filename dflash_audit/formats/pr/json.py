"""A review as one JSON object, version 1: both reports, and what changed. Keys are only ever added."""

import json
from pathlib import Path
from typing import Any, Final

from dflash_audit import __version__
from dflash_audit.formats import json_report
from dflash_audit.formats.json_text import json_text
from dflash_audit.publishing.before_after import Comparison
from dflash_audit.publishing.review import Review

SCHEMA_VERSION: Final = 1


def render(done: Review) -> str:
    """One JSON object, on one line."""
    return json_text(document(done))


def schema() -> str:
    """The JSON Schema of such an object, with that of a report in it."""
    own = json.loads(Path(__file__).with_suffix(".schema.json").read_text(encoding="utf-8"))
    own["$defs"]["report"] = json.loads(json_report.schema())
    return json.dumps(own, indent=2, ensure_ascii=False)


def document(done: Review) -> dict[str, Any]:
    """The object; its keys are those of the schema."""
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "dflash-audit", "version": __version__},
        "pull_request": {
            "repo": done.repo.name,
            "number": done.number,
            "base": done.pull_request and done.pull_request.base,
            "status": done.pull_request and done.pull_request.status,
        },
        "before": done.before and json_report.document(done.before),
        "after": done.after and json_report.document(done.after),
        "comparison": done.comparison and _comparison(done.comparison),
        "comment": done.posted
        and {"action": done.posted.action, "id": done.posted.id, "url": done.posted.url},
        "error": done.error and {"kind": done.error.kind, "message": done.error.message},
        "exit_code": done.exit_code,
    }


def _comparison(comparison: Comparison) -> dict[str, Any]:
    return {
        "engines": [
            {
                "name": each.engine,
                "gating": each.gating,
                "before": each.before,
                "after": each.after,
                "change": each.change,
            }
            for each in comparison.engines
        ],
        "findings": {
            kind: [json_report.finding_document(finding) for finding in findings]
            for kind, findings in comparison.kinds
        },
    }
