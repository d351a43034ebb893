"""What tells a finding from every other, from one run to the next."""

import hashlib
from collections.abc import Iterable

from dflash_audit.finding import Finding


def fingerprints(findings: Iterable[Finding], source: str) -> list[str]:
    """One for each finding of a report, 64 hex digits, no two the same.

    It hangs on the rule, the engine, the subject and the name of the source, and not on
    the words of the message, which a later version may choose better.
    """
    seen: dict[tuple[str, ...], int] = {}
    found = []
    for finding in findings:
        key = (source, finding.rule, finding.engine or "", finding.subject)
        seen[key] = seen.get(key, 0) + 1
        text = "\0".join((*key, str(seen[key])))
        found.append(hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest())
    return found
