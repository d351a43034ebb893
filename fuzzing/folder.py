"""A checkpoint's folder in memory, as `sources.reading.Folder` describes one."""

import posixpath
from collections.abc import Mapping, Sequence

from dflash_audit.errors import Unreadable
from dflash_audit.sources.checkpoint import Origin
from dflash_audit.sources.safetensors_header import PREFIX, header_length, parse_header
from dflash_audit.sources.weight_files import WeightFile


class MemoryFolder:
    """Files by their paths. `asked` are the paths that a reader looked for or read.

    `missing` are bytes that a file has beside those given: data that nobody reads.
    """

    def __init__(self, files: Mapping[str, bytes], missing: Mapping[str, int] | None = None) -> None:
        self.origin = Origin("local", "draft")
        self.name = "draft"
        self.names = sorted({top + slash for top, slash, _ in (path.partition("/") for path in files)})
        self.asked: list[str] = []
        self._files = files
        self._missing = missing or {}

    def holds(self, path: str) -> bool:
        self.asked.append(path)
        return posixpath.normpath(path) in self._files

    def read_small(self, names: Sequence[str]) -> list[bytes]:
        self.asked.extend(names)
        return [self._files[name] for name in names]

    def read_headers(self, names: Sequence[str]) -> list[WeightFile | Unreadable]:
        self.asked.extend(names)
        return [self._read_header(name) for name in names]

    def _read_header(self, name: str) -> WeightFile | Unreadable:
        content, told = self._files[name], f"{self.name}/{name}"
        size = len(content) + self._missing.get(name, 0)
        try:
            length = header_length(content[:PREFIX], size, told)
            header = parse_header(content[PREFIX : PREFIX + length], size, told)
        except Unreadable as error:
            return error
        return WeightFile(name, size, PREFIX + length, header)
