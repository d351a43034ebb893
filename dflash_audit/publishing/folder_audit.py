"""A folder as it is found, and its audit: what is uploaded is what was looked at before."""

import os

from dflash_audit.auditing import Request, audit
from dflash_audit.errors import Unreadable
from dflash_audit.publishing.contents import Contents, contents
from dflash_audit.report import Report
from dflash_audit.sources.source import origin


def audit_folder(request: Request) -> tuple[Contents | None, Report]:
    """What the folder `request.source` holds, None where the report has an `error`, and the report.

    What keeps the folder from being uploaded, such as a name that no repo takes, is such an error too.
    """
    folder = request.source
    try:
        before = contents(folder) if os.path.isdir(folder) else None
    except Unreadable as error:
        return None, Report(origin(folder, None), error=error)
    report = audit(request)
    if before is None and report.error is None:
        late = Unreadable("changed", folder, "there was no such folder before its audit")
        return None, Report(report.origin, error=late)
    return (before if report.error is None else None), report


def unjudged(report: Report) -> str | None:
    """Which deciding engines gave no verdict, in a line; None where all did.

    No verdict is no pass: who uploads such a draft says so, with --fail-on never.
    """
    skipped = [run for run in report.runs if run.engine in report.gating and report.verdict(run) == "skipped"]
    if not skipped or report.fail_on == "never":
        return None
    names = ", ".join(run.engine for run in skipped)
    return f"{report.origin.id}: not judged on {names}; --fail-on never uploads it all the same"
