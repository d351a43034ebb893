"""The baseline: what was found once and does not fail an audit again."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from dflash_audit import __version__
from dflash_audit.atomic_write import unwritable, write_atomically
from dflash_audit.finding import SEVERITIES, Severity
from dflash_audit.formats.json_text import json_text
from dflash_audit.gate.controls import Controls
from dflash_audit.gate.subjects import prints, subjects
from dflash_audit.gate.unusable import Unusable
from dflash_audit.gate.waive import waive
from dflash_audit.report import Report

VERSION: Final = 1
"""Of the file, and of how a fingerprint is made."""

KEY: Final = "dflash_audit_baseline"


def read(path: str) -> dict[str, Severity]:
    """Fingerprint -> the severity under which it is known. Raises Unusable."""
    entries = _document(path)["findings"]
    if not isinstance(entries, list):
        raise Unusable(path, "is a broken baseline: its findings are no list")
    known: dict[str, Severity] = {}
    for entry in entries:
        fingerprint = entry.get("fingerprint") if isinstance(entry, dict) else None
        severity = next(
            (s for s in SEVERITIES if isinstance(entry, dict) and entry.get("severity") == s), None
        )
        if not isinstance(fingerprint, str) or severity is None:
            raise Unusable(path, "is a broken baseline: a finding without its fingerprint or severity")
        known[fingerprint] = severity
    return known


def _document(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except OSError as error:
        raise Unusable(path, f"cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        raise Unusable(path, "is no baseline: it is not JSON") from None
    if not isinstance(document, dict) or KEY not in document:
        raise Unusable(path, "is no baseline: --write-baseline makes one")
    if document[KEY] != VERSION or isinstance(document[KEY], bool):
        told = json.dumps(document[KEY])[:40]
        raise Unusable(path, f"is a baseline of version {told}, and this is for {VERSION}: write it again")
    return {"findings": None, **document}


def write(report: Report, controls: Controls, path: str) -> Report:
    """Write what counts or is known to `path`. The report under the controls, which then knows all of it.

    Of what could not be read or run nothing is written; an error of the file is the report's.
    """
    held = waive(report, controls)
    if held.error is not None:
        return held
    entries = [*_entries(held)]
    document = {KEY: VERSION, "tool": {"name": "dflash-audit", "version": __version__}, "findings": entries}
    try:
        write_atomically(path, f"{json_text(document, indent=1)}\n")
    except OSError as error:
        return replace(held, error=unwritable(path, error))
    return waive(report, controls._replace(known={e["fingerprint"]: e["severity"] for e in entries}))


def _entries(report: Report) -> Iterator[dict[str, Any]]:
    for finding, fingerprints in zip(report.findings, prints(report), strict=True):
        if report.decides(finding) and finding.waived != "ignored":
            for name, fingerprint in zip(subjects(finding), fingerprints, strict=True):
                yield {
                    "fingerprint": fingerprint,
                    "rule": finding.rule,
                    "severity": finding.severity,
                    "engine": finding.engine,
                    "subject": name,
                }
