"""Where the lines of a sweep go: a file that grows by whole lines, stdout, or nowhere."""

import os
import sys
from typing import Protocol

from dflash_audit.atomic_write import unwritable
from dflash_audit.errors import Unreadable
from dflash_audit.sink import sink
from dflash_audit.sweeping.claim import claim


class Lines(Protocol):
    """Takes a line without its newline; raises `Unreadable` (unwritable-file), of stdout BrokenPipeError."""

    def write(self, line: str) -> None: ...


class Nowhere:
    """For a sweep of which the table is all that is wanted."""

    def write(self, line: str) -> None:
        del line


class Stdout:
    def write(self, line: str) -> None:
        try:
            print(line, flush=True)
        except BrokenPipeError:
            sink(sys.stdout)
            raise
        except OSError as error:
            sink(sys.stdout)
            raise Unreadable("unwritable-file", "stdout", error.strerror or str(error)) from None


class Appended:
    """The end of a file, this sweep's own; raises `Unreadable` (unwritable-file) where it cannot be that."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._handle = claim(path)

    def write(self, line: str) -> None:
        # Past any buffer: what was told of is in the file, whatever ends the sweep.
        rest = memoryview(f"{line}\n".encode())
        try:
            while rest:
                rest = rest[os.write(self._handle, rest) :]
        except OSError as error:
            raise unwritable(self._path, error) from None
