"""A changed config.json put in the place of the old one, which stays beside it."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Final

from dflash_audit.errors import Unreadable
from dflash_audit.sources.checkpoint import CONFIG

BACKUP: Final = f"{CONFIG}.orig"


def write_config(folder: Path, old: bytes, new: bytes) -> Path:
    """Put `new` into the place of a folder's config.json that holds `old`; the path of the backup.

    The change is whole or not at all. A config.json that is a link becomes a file of
    its own: what the link points to is never written.

    Raises `Unreadable`: in-cache for a file of the Hub's cache, changed where the file
    does not hold `old` any more, unwritable where the disk does not take it.
    """
    path = folder / CONFIG
    if in_cache(path):
        reason = (
            "a file of the Hub's cache, which other programs read too: copy the folder, and mend the copy"
        )
        raise Unreadable("in-cache", str(path), reason)
    written: list[Path] = []
    try:
        ready = _beside(path, new, written)
        backup = _back_up(path, old, written)
        if path.read_bytes() != old:
            raise Unreadable("changed", str(path), "it changed in the meantime, and is left as it is")
        os.replace(ready, path)
    except OSError as error:
        _remove(written)
        raise Unreadable("unwritable", str(path), error.strerror or str(error)) from None
    except BaseException:
        _remove(written)
        raise
    return backup


def in_cache(path: Path) -> bool:
    """Whether a path lies in a cache of huggingface_hub, or is a link into one."""
    return any(_cached(place) for place in (path.absolute(), path.resolve()))


def _cached(path: Path) -> bool:
    parents = path.parts[:-1]
    repos = any(part.startswith("models--") for part in _of_repos(parents))
    shared = path.parent.name == "blobs" or "blobs" in parents[-3:]
    return repos or (
        shared and any((parent / "version.txt").exists() or _is_hub(parent) for parent in path.parents)
    )


def _of_repos(parts: tuple[str, ...]) -> Iterator[str]:
    """The names that a folder of a repo bears in the cache: those right above `snapshots` or `blobs`."""
    for name, below in pairwise(parts):
        if below in ("snapshots", "blobs"):
            yield name


def _is_hub(folder: Path) -> bool:
    with suppress(OSError):
        return any(name.startswith("models--") for name in os.listdir(folder))
    return False


def _beside(path: Path, content: bytes, written: list[Path]) -> Path:
    """A file of that content in the same folder, with the mode of the one whose place it takes."""
    handle, name = tempfile.mkstemp(prefix=f".{CONFIG}.", dir=path.parent)
    written.append(Path(name))
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    shutil.copymode(path, name)
    return Path(name)


def _back_up(path: Path, content: bytes, written: list[Path]) -> Path:
    """The original under the first name that is free; nothing that is there is written over."""
    number = 0
    while True:
        backup = path.with_name(BACKUP if number == 0 else f"{BACKUP}.{number}")
        try:
            with open(backup, "xb") as file:
                written.append(backup)
                file.write(content)
        except FileExistsError:
            number += 1
            continue
        shutil.copymode(path, backup)
        return backup


def _remove(paths: list[Path]) -> None:
    for path in paths:
        with suppress(OSError):
            path.unlink()
