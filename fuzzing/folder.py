"""A checkpoint's folder in memory, as `sources.reading.Folder` describes one."""

import posixpath
from collections.abc import Mapping, Sequence
from typing import Final

from dflash_audit.errors import Unreadable
from dflash_audit.sources.checkpoint import Origin
from dflash_audit.sources.safetensors_header import PREFIX, Header, Layout, header_length, parse_header
from dflash_audit.sources.weight_files import WeightFile

WEIGHTS: Final = "model.safetensors"


class MemoryFolder:
    """Files by their paths. `asked` are the paths that a reader looked for or read.

    With a `layout` there is a weight file too, whose header says so.
    """

    def __init__(self, files: Mapping[str, bytes], layout: Layout | None = None) -> None:
        self.origin = Origin("local", "draft")
        self.name = "draft"
        self._parsed = {} if layout is None else {WEIGHTS: Header(layout, ())}
        paths = (*files, *self._parsed)
        self.names = sorted({top + slash for top, slash, _ in (path.partition("/") for path in paths)})
        self.asked: list[str] = []
        self._files = files

    def holds(self, path: str) -> bool:
        self.asked.append(path)
        return posixpath.normpath(path) in self._files or path in self._parsed

    def read_small(self, names: Sequence[str]) -> list[bytes]:
        self.asked.extend(names)
        return [self._files[name] for name in names]

    def read_headers(self, names: Sequence[str]) -> list[WeightFile | Unreadable]:
        self.asked.extend(names)
        return [self._read_header(name) for name in names]

    def _read_header(self, name: str) -> WeightFile | Unreadable:
        if name in self._parsed:
            return WeightFile(name, PREFIX, PREFIX, self._parsed[name])
        content, told = self._files[name], f"{self.name}/{name}"
        size = len(content)
        try:
            length = header_length(content[:PREFIX], size, told)
            header = parse_header(content[PREFIX : PREFIX + length], size, told)
        except Unreadable as error:
            return error
        return WeightFile(name, size, PREFIX + length, header)
