"""A report through the gate."""

from dflash_audit.gate.controls import Controls
from dflash_audit.gate.waive import waive
from dflash_audit.report import Report


def gated(report: Report, controls: Controls, write_baseline: str | None = None) -> Report:
    """The report under the controls, once what it found is written where that was asked for."""
    if write_baseline is None:
        return waive(report, controls)
    # Only here: an audit without a baseline does without.
    from dflash_audit.gate.baseline import write

    return write(report, controls, write_baseline)
