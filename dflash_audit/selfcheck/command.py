"""The self-check as lines and an exit code."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from dflash_audit.engines.installed.packages import Package
from dflash_audit.errors import Unreadable
from dflash_audit.formats.clean import clean
from dflash_audit.report import FOUND, PASSED, UNREADABLE
from dflash_audit.selfcheck.cases import find_cases
from dflash_audit.selfcheck.check import check, nearest_profile


def selfcheck(
    folders: Sequence[Path],
    package: Package,
    profile: str | None,
    capability: int,
    write: Callable[[str], None],
) -> int:
    """Hold the installed version of a package against a profile, by default the nearest; the exit code.

    A draft that differs gets its lines; at the end stands how many agree.
    """
    cases = find_cases(folders)
    if not cases:
        print("dflash-audit: there is no draft in these folders", file=sys.stderr)
        return UNREADABLE
    version = package.installed_version() or "unknown"
    against = profile or nearest_profile(package, version)
    if profile is None and against != package.profiles + version:
        write(f"{package.title} {clean(version)} has no profile; {against} is the nearest.")
    agree = passed_over = 0
    try:
        for compared in check(cases, package, against, capability):
            if compared.not_compared is not None:
                passed_over += 1
                write(f"{clean(compared.case.name)}: not compared ({clean(compared.not_compared)})")
            elif not compared.differences:
                agree += 1
            for line in compared.differences:
                write(f"{clean(compared.case.name)}: {clean(line)}")
    except Unreadable as error:
        print(f"dflash-audit: {error.message}", file=sys.stderr)
        return UNREADABLE
    of = len(cases) - passed_over
    left = f", {passed_over} not compared" if passed_over else ""
    engine = f"the installed {package.title} {clean(version)}"
    write(f"{against} and {engine} agree on {agree} of {of} drafts{left}")
    return PASSED if agree == of else FOUND
