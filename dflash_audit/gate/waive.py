"""A report under the controls of the gate: what is ignored or known, and which skips fail it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from dflash_audit.finding import SEVERITIES, Finding, Severity, Skip, Waiver
from dflash_audit.fold import title
from dflash_audit.gate.controls import Controls
from dflash_audit.report import Report

ORDER: Final[tuple[Waiver | None, ...]] = (None, "known", "ignored")


def waive(report: Report, controls: Controls) -> Report:
    """The report with its findings marked; one that folds what is waived and what is not is parted."""
    known = _prints(report) if controls.known else [()] * len(report.findings)
    findings = [
        part
        for finding, fingerprints in zip(report.findings, known, strict=True)
        for part in _parts(finding, fingerprints, controls)
    ]
    skips = tuple(_failing(report, controls)) if controls.strict and controls.fail_on != "never" else ()
    return replace(report, findings=tuple(findings), failing_skips=skips)


def _parts(finding: Finding, fingerprints: Sequence[str], controls: Controls) -> Iterator[Finding]:
    """The finding, or one for each waiver that some of its subjects have, what counts first."""
    names = finding.subjects or (finding.subject,)
    waivers: list[Waiver | None] = ["ignored" if controls.ignores(finding, name) else None for name in names]
    for index, fingerprint in enumerate(fingerprints):
        if waivers[index] is None and _is_known(fingerprint, finding.severity, controls.known or {}):
            waivers[index] = "known"
    if len({*waivers}) == 1:
        yield replace(finding, waived=waivers[0])
        return
    told = [f"{waivers.count(waiver)} {waiver or 'left'}" for waiver in ORDER if waiver in waivers]
    message = f"{finding.message} (Of {len(names)} subjects: {', '.join(told)}.)"
    for waiver in ORDER:
        if waiver in waivers:
            part = tuple(name for name, its in zip(names, waivers, strict=True) if its == waiver)
            yield replace(finding, subject=title(part), subjects=part, message=message, waived=waiver)


def _prints(report: Report) -> list[tuple[str, ...]]:
    # Only here: an audit without a baseline does without.
    from dflash_audit.gate.subjects import prints

    return prints(report)


def _is_known(fingerprint: str, severity: Severity, known: Mapping[str, Severity]) -> bool:
    """What was a warning and has become an error is new."""
    recorded = known.get(fingerprint)
    return recorded is not None and SEVERITIES.index(severity) >= SEVERITIES.index(recorded)


def _failing(report: Report, controls: Controls) -> Iterator[Skip]:
    """The skips of deciding engines, of rules that are not off; a skip begins with the engine's name."""
    starts = tuple(f"{engine}: " for engine in report.gating)
    for skip in report.skips:
        if skip.reason.startswith(starts) and not controls.off(skip.rule):
            yield skip
