"""What of a folder goes up, and what tells that it has changed since."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from dflash_audit.errors import Unreadable
from dflash_audit.fixing.writing import BACKUP

KEPT: Final = ".gitattributes"
"""The one hidden file that goes up: without it a repo takes weights for text."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file by its path below the folder, with slashes.

    `size` is in bytes. `mark` changes with whatever is done to the file. `outside` is
    where a link leads that leaves the folder, None for all that stays in it.
    """

    path: str
    size: int
    mark: tuple[int, ...]
    outside: str | None = None


@dataclass(frozen=True, slots=True)
class Contents:
    """A folder's files by path, and what stays behind by path, a folder's with a slash."""

    folder: str
    files: tuple[Entry, ...]
    left: tuple[str, ...]


def contents(folder: str) -> Contents:
    """The files of a folder and of all folders in it. Raises `Unreadable` (unreadable-file).

    What is hidden stays behind, and so does a config.json that a repair has kept, a link to
    a folder and what is no file. Nothing in the folder, such as a .gitignore, says otherwise.
    """
    root = os.path.realpath(folder)
    files: list[Entry] = []
    left: list[str] = []
    for found in _walk(folder, ""):
        if isinstance(found, str):
            left.append(found)
        else:
            files.append(_entry(found, folder, root))
    return Contents(folder, tuple(sorted(files, key=lambda each: each.path)), tuple(sorted(left)))


def _walk(folder: str, below: str) -> Iterator[str | tuple[str]]:
    """The paths of what goes up, each in a tuple, and of what stays behind."""
    try:
        with os.scandir(os.path.join(folder, below)) as opened:
            found = sorted(opened, key=lambda each: each.name)
    except OSError as error:
        raise Unreadable("unreadable-file", os.path.join(folder, below), _reason(error)) from None
    for each in found:
        path = f"{below}{each.name}"
        try:
            is_folder, is_file = each.is_dir(), each.is_file()
        except OSError as error:  # such as of a link to itself
            raise Unreadable("unreadable-file", os.path.join(folder, path), _reason(error)) from None
        if is_folder:
            if each.name.startswith(".") or each.is_symlink():
                yield f"{path}/"
            else:
                yield from _walk(folder, f"{path}/")
        elif not is_file or _stays(path, each.name):
            yield path
        else:
            yield (path,)


def _stays(path: str, name: str) -> bool:
    kept = path.startswith(BACKUP) and path.removeprefix(BACKUP).strip(".0123456789") == ""
    return kept or (name.startswith(".") and path != KEPT)


def _entry(found: tuple[str], folder: str, root: str) -> Entry:
    (path,) = found
    file = os.path.join(folder, path)
    try:
        path.encode()
    except UnicodeEncodeError:
        raise Unreadable("unreadable-file", file, "its name is not UTF-8, and no repo takes it") from None
    try:
        status = os.stat(file)
    except OSError as error:
        raise Unreadable("unreadable-file", file, _reason(error)) from None
    if not stat.S_ISREG(status.st_mode) or not os.access(file, os.R_OK):
        raise Unreadable("unreadable-file", file, "cannot be read")
    leads = os.path.realpath(file)
    inside = os.path.commonpath((leads, root)) == root
    mark = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return Entry(path, status.st_size, mark, None if inside else leads)


def changes(before: Contents, now: Contents) -> list[str]:
    """The paths of files that were changed, added or removed."""
    old, new = ({each.path: each for each in state.files} for state in (before, now))
    return sorted(path for path in old.keys() | new.keys() if old.get(path) != new.get(path))


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
