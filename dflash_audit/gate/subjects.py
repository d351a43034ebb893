"""What a finding is about, one by one: of what folds fewer than before, the rest stays known."""

from dataclasses import replace

from dflash_audit.finding import Finding
from dflash_audit.fingerprint import fingerprints
from dflash_audit.formats.place import Places
from dflash_audit.report import Report


def subjects(finding: Finding) -> tuple[str, ...]:
    return finding.subjects or (finding.subject,)


def prints(report: Report) -> list[tuple[str, ...]]:
    """For each finding the fingerprints of its subjects, in their order."""
    single = [
        replace(finding, subject=name, subjects=())
        for finding in report.findings
        for name in subjects(finding)
    ]
    found = iter(fingerprints(single, Places(report).name))
    return [tuple(next(found) for _ in subjects(finding)) for finding in report.findings]
