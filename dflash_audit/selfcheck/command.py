"""The self-check as lines and an exit code."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from dflash_audit.errors import Unreadable
from dflash_audit.formats.clean import clean
from dflash_audit.report import FOUND, PASSED, UNREADABLE
from dflash_audit.selfcheck.cases import find_cases
from dflash_audit.selfcheck.check import PREFIX, check, nearest_profile


def selfcheck(
    folders: Sequence[Path],
    profile: str | None,
    version: str,
    capability: int,
    write: Callable[[str], None],
) -> int:
    """Hold the installed version against a profile, by default the nearest; the exit code.

    A draft that differs gets its lines; at the end stands how many agree.
    """
    cases = find_cases(folders)
    if not cases:
        print("dflash-audit: there is no draft in these folders", file=sys.stderr)
        return UNREADABLE
    against = profile or nearest_profile(version)
    if profile is None and against != PREFIX + version:
        write(f"SGLang {version} has no profile; {against} is the nearest.")
    agree = passed_over = 0
    try:
        for compared in check(cases, against, capability):
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
    write(f"{against} and the installed SGLang {clean(version)} agree on {agree} of {of} drafts{left}")
    return PASSED if agree == of else FOUND
