"""A file written whole or not at all: no reader sees half of it, and a failure leaves what was there."""

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from dflash_audit.errors import Unreadable


def write_atomically(path: str, text: str) -> None:
    """Write `text` as UTF-8; raises OSError. What is no regular file, such as /dev/stdout, is written into.

    A file that is there keeps its permissions, and a link stays a link.
    """
    content = text.encode("utf-8", "backslashreplace")
    mode = _mode(path)
    if mode is not None and not stat.S_ISREG(mode):
        with open(path, "wb") as file:
            file.write(content)
        return
    with replacing(path) as file:
        file.write(content)


@contextmanager
def replacing(path: str) -> Iterator[BinaryIO]:
    """A file to write to, which takes the place of the regular file at `path` once the body ends well."""
    mode = _mode(path)
    target = os.path.realpath(path)
    # In the same folder, for only within a file system a file is replaced at once.
    scratch = os.path.join(os.path.dirname(target), f".dflash-audit-{secrets.token_hex(8)}")
    handle = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with open(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(scratch, stat.S_IMODE(mode))
        os.replace(scratch, target)
    except BaseException:
        os.unlink(scratch)
        raise


def _mode(path: str) -> int | None:
    """The mode of what is at `path`, None where nothing is."""
    try:
        return os.stat(path).st_mode
    except FileNotFoundError:
        return None


def unwritable(path: str, error: OSError) -> Unreadable:
    """What kept `path` from being written, as it is told."""
    folder = os.path.dirname(os.path.realpath(path))
    if isinstance(error, FileNotFoundError) and not os.path.isdir(folder):
        return Unreadable("unwritable-file", path, f"cannot be written: there is no folder {folder}")
    return Unreadable("unwritable-file", path, f"cannot be written: {error.strerror or error}")
