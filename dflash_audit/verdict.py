"""An engine's verdict on a checkpoint, from what the rules found for it."""

from collections.abc import Iterable
from typing import Literal

from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding

Verdict = Literal["pass", "warn", "fail", "skipped"]


def verdict(run: EngineRun, findings: Iterable[Finding]) -> Verdict:
    """fail for a refusal or an error, warn for warnings, skipped where nothing was replayed."""
    if run.skipped is not None:
        return "skipped"
    severities = {finding.severity for finding in findings if finding.engine == run.engine}
    if run.refusal is not None or "error" in severities:
        return "fail"
    return "warn" if "warning" in severities else "pass"
