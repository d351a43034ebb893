"""A checkpoint in a folder of a disk."""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from dflash_audit.errors import Unreadable
from dflash_audit.sources.checkpoint import CONFIG, MAX_JSON, Checkpoint, Origin
from dflash_audit.sources.reading import read_folder
from dflash_audit.sources.safetensors_header import PREFIX, header_length, parse_header
from dflash_audit.sources.weight_files import WEIGHTS, WeightFile, other_format

BLOBS: Final = "blobs"
"""Where huggingface_hub 1.31 keeps files (its `file_download.py`), two folders deep at most."""


def read_path(source: str | os.PathLike[str]) -> Checkpoint:
    """Read a folder, or one `.safetensors` file beside its config.json.

    Raises `Unreadable`: no-such-source, and what `read_folder` does.
    """
    path, name = Path(source), os.fspath(source)
    origin = Origin("local", name)
    if not os.path.exists(path):
        hint = "" if os.sep in name else " (a repo of the Hub is org/name)"
        raise Unreadable("no-such-source", name, f"no such folder or file{hint}")
    if path.is_dir():
        return read_folder(DiskFolder(path, origin, name))
    if not path.name.endswith(WEIGHTS):
        also = other_format([path.name]) or _folder_meant(path)
        raise Unreadable("no-such-source", name, f"neither a folder nor a {WEIGHTS} file{also}")
    return read_folder(DiskFolder(path.parent, origin, str(path.parent)), only=path.name)


def open_path(source: str) -> "DiskFolder":
    """A folder, to read files of; raises `Unreadable` (no-such-source)."""
    if not os.path.exists(source):
        hint = "" if os.sep in source else " (a repo of the Hub is org/name)"
        raise Unreadable("no-such-source", source, f"no such folder{hint}")
    if not os.path.isdir(source):
        raise Unreadable("no-such-source", source, f"not a folder{_folder_meant(Path(source))}")
    return DiskFolder(Path(source), Origin("local", source), source)


def _folder_meant(path: Path) -> str:
    """What to add about a file of a checkpoint: the folder to name in its place."""
    return f": name its folder, {path.parent}" if os.path.isfile(path.parent / CONFIG) else ""


class DiskFolder:
    """A folder of a disk, as `reading.Folder` describes one."""

    def __init__(self, path: Path, origin: Origin, name: str) -> None:
        self.origin = origin
        self.name = name
        self._path = path
        try:
            self.names = sorted(f"{n}/" if os.path.isdir(path / n) else n for n in os.listdir(path))
        except OSError as e:
            raise Unreadable("unreadable-file", name, _reason(e)) from None

    def holds(self, path: str) -> bool:
        return os.path.isfile(self._path / path)

    def read_small(self, names: Sequence[str]) -> list[bytes]:
        return [self._read_small(name) for name in names]

    def read_headers(self, names: Sequence[str]) -> list[WeightFile | Unreadable]:
        return [self._read_header(name) for name in names]

    def _read_small(self, name: str) -> bytes:
        with self._opened(name) as (file, size):
            if size > MAX_JSON:
                raise Unreadable(
                    "unreadable-file",
                    f"{self.name}/{name}",
                    f"{size} bytes of JSON, {MAX_JSON} are the most",
                )
            return file.read()

    def _read_header(self, name: str) -> WeightFile | Unreadable:
        told = f"{self.name}/{name}"
        try:
            with self._opened(name) as (file, size):
                length = header_length(file.read(PREFIX), size, told)
                header = parse_header(file.read(length), size, told)
        except Unreadable as error:
            return error
        return WeightFile(name, size, PREFIX + length, header)

    @contextmanager
    def _opened(self, name: str) -> Iterator[tuple[BinaryIO, int]]:
        """A file open for reading and its size in bytes; raises `Unreadable` (unreadable-file)."""
        path, told = self._path / name, f"{self.name}/{name}"
        try:
            if os.path.islink(path) and not _may_follow(path):
                told_to = "a link out of its folder, to no folder of a checkpoint"
                raise Unreadable("unreadable-file", told, f"{told_to}: not followed")
            if not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe would wait for ever
                raise Unreadable("unreadable-file", told, "not a file")
            with open(path, "rb") as file:
                yield file, os.fstat(file.fileno()).st_size
        except OSError as e:
            raise Unreadable("unreadable-file", told, _reason(e)) from None


def _may_follow(link: Path) -> bool:
    """Whether a link leads to a checkpoint's file: in its own folder, in another's, or in a cache of the Hub.

    So a checkpoint out of a repository shows nothing else of the disk that it lies on. A snapshot of a cache
    is made of links to `../../blobs`, and so were the folders that older versions downloaded to.
    """
    target = Path(os.path.realpath(link))
    if target.is_relative_to(os.path.realpath(link.parent)):
        return True
    if BLOBS in target.parts[-4:-1]:
        return True
    return os.path.isdir(target.parent) and any(n.endswith(WEIGHTS) for n in os.listdir(target.parent))


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
