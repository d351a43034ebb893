"""What an earlier sweep has written into a file, to go on from there."""

import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, Final

from dflash_audit.atomic_write import replacing
from dflash_audit.gate.unusable import Unusable
from dflash_audit.sweeping.row import Key, Row, row

START: Final = b'{"schema_version":1,"tool":{"name":"dflash-audit",'
"""How each line begins; so does what is left of one that was cut."""

PASSING: Final = frozenset(("network", "audit-failed"))
"""Kinds of errors that another attempt, or another version of the audit, may mend."""


@dataclass(slots=True)
class Earlier:
    """What counts as done, and how many lines are not kept: torn ones, and those to be tried again."""

    rows: dict[Key, Row] = field(default_factory=dict)
    dropped: int = 0


def read_earlier(path: str) -> Earlier:
    """The file's lines that are complete and are not to be tried again.

    Raises Unusable where a sweep did not write it. Only one line is held at a time.
    """
    earlier = Earlier()
    try:
        with open(path, "rb") as file:
            for _, kept in _lines(path, file):
                if kept is None or kept.key in earlier.rows:
                    earlier.dropped += 1
                else:
                    earlier.rows[kept.key] = kept
    except OSError as error:
        raise Unusable(path, f"cannot be read: {error.strerror or error}") from None
    return earlier


def drop_the_rest(path: str) -> None:
    """Rewrite the file with the lines alone that `read_earlier` counts as done; raises OSError."""
    kept: set[Key] = set()
    with open(path, "rb") as file, replacing(path) as whole:
        for line, found in _lines(path, file):
            if found is not None and found.key not in kept:
                kept.add(found.key)
                whole.write(line)


def has_results(path: str) -> bool:
    """Whether a file holds anything that a new sweep would write over."""
    try:
        found = os.stat(path)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size > 0


def _lines(path: str, file: BinaryIO) -> Iterator[tuple[bytes, Row | None]]:
    """Each line with its row, None for one that is torn or to be tried again."""
    for number, line in enumerate(file, start=1):
        if not line.startswith(START[: len(line)]):
            raise Unusable(f"{path}, line {number}", "is no line of a sweep: the file is left as it is")
        yield line, _kept(line)


def _kept(line: bytes) -> Row | None:
    if not line.endswith(b"\n"):
        return None
    try:
        found = row(json.loads(line))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return None if found.error in PASSING else found
