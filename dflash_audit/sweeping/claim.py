"""One sweep a file: what two of them write and rewrite at once would lose lines of both."""

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from dflash_audit.atomic_write import unwritable
from dflash_audit.errors import Unreadable


def claim(path: str) -> int:
    """The file opened to write at its end, made if need be, and this process's own until it is closed.

    Raises `Unreadable` (unwritable-file) where it cannot be opened, or another sweep has it.
    What is no regular file, such as a pipe, is nobody's own.
    """
    try:
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    except OSError as error:
        raise unwritable(path, error) from None
    if not _own(path, handle):
        os.close(handle)
        raise Unreadable("unwritable-file", path, "another sweep writes into it")
    return handle


@contextmanager
def claimed(path: str) -> Iterator[None]:
    """The body has the file for its own; raises as `claim` does."""
    handle = claim(path)
    try:
        yield
    finally:
        os.close(handle)


def _own(path: str, handle: int) -> bool:
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    # The one that had it may have put another file into its place in the meantime.
    with suppress(OSError):
        return os.path.samestat(os.fstat(handle), os.stat(path))
    return False
