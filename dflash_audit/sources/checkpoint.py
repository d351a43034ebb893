"""A checkpoint: its config, and what the headers of its weight files say.

Standard library only; no tensor data is read.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from dflash_audit.errors import LFS_POINTER, Unreadable
from dflash_audit.sources.remarks import Remark

CONFIG: Final = "config.json"

MAX_JSON: Final = 32 * 2**20
"""Most bytes of a JSON file that is read: the index of 100,000 tensors is a third of it."""

MAX_NESTING: Final = 100
"""Deepest JSON of a config. Python copies and prints some 300 levels before it gives up; a config has ten."""


class Tensor(NamedTuple):
    """One tensor of a weight file: `dtype` as the header spells it, `shape` in numbers."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    file: str

    @property
    def numel(self) -> int:
        return math.prod(self.shape)


class File(NamedTuple):
    """A weight file that the engine reads: `size` in bytes, `tensors` how many it holds."""

    name: str
    size: int
    tensors: int


class Origin(NamedTuple):
    """Where a checkpoint lies: `id` is a path, or a repo and a folder in it.

    `revision` is what was asked for, `commit` the 40 hex digits that were read;
    both are None for a path, `revision` also for a repo's default branch.
    """

    kind: Literal["local", "hub"]
    id: str
    revision: str | None = None
    commit: str | None = None


class JsonFiles(Mapping[str, dict[str, Any]]):
    """The top-level `*.json` objects by file name, each read when it is looked up.

    So a broken file that no engine would open stays unread. One that is looked
    up and is no object raises `Unreadable` (bad-json). `content` is what was
    read before.
    """

    def __init__(
        self, source: str, names: Iterable[str], read: Callable[[str], bytes], content: Mapping[str, bytes]
    ) -> None:
        self._source = source
        self._names = tuple(names)
        self._read = read
        self._content = dict(content)

    @property
    def bytes_read(self) -> int:
        return sum(map(len, self._content.values()))

    @property
    def read(self) -> tuple[str, ...]:
        """The names of those that were read."""
        return tuple(self._content)

    def raw(self, name: str) -> bytes:
        """The bytes of a file that was read already; KeyError for any other."""
        return self._content[name]

    def looked_up(self, name: str) -> dict[str, Any] | None:
        """A file that was read already; None for any other."""
        return self[name] if name in self and name in self._content else None

    def __getitem__(self, name: str) -> dict[str, Any]:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._content:
            self._content[name] = self._read(name)
        # Parsed anew each time: what an engine does to it is not seen by the next.
        return parse_shallow(self._content[name], "bad-json", f"{self._source}/{name}")

    def __contains__(self, name: object) -> bool:  # without reading it
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What an engine sees of a checkpoint before it loads.

    `tensors` stand in the order in which the engine reads them; a name in two
    files is there twice. `names` are all names at the top level, sorted; a
    folder's ends in a slash. `remarks` are oddities that an engine takes. `looked_at`
    are the tensors whose load is replayed, None for all of them: a what-if may turn on few.
    """

    origin: Origin
    config: dict[str, Any]
    json_files: JsonFiles
    tensors: tuple[Tensor, ...]
    files: tuple[File, ...]
    header_bytes: int
    names: tuple[str, ...] = ()
    remarks: tuple[Remark, ...] = ()
    looked_at: tuple[Tensor, ...] | None = None

    @property
    def to_load(self) -> tuple[Tensor, ...]:
        """The tensors whose load is replayed, in the engine's order."""
        return self.tensors if self.looked_at is None else self.looked_at

    @property
    def kind(self) -> Literal["local", "hub"]:
        return self.origin.kind

    @property
    def id(self) -> str:
        return self.origin.id

    @property
    def bytes_read(self) -> int:
        """Bytes read so far, of the weight files and of the JSON files."""
        return self.header_bytes + self.json_files.bytes_read

    @property
    def bytes_total(self) -> int:
        """What those files hold, in bytes."""
        return sum(file.size for file in self.files) + self.json_files.bytes_read


def parse_object(raw: bytes, kind: str, file: str) -> dict[str, Any]:
    """Parse a JSON file that must hold an object; raises `Unreadable` (`kind`).

    As Python's json, which the engines read it with: NaN is taken, and of a key
    given twice the last counts.
    """
    try:
        value = json.loads(raw.decode("utf-8"))
    except UnicodeDecodeError as e:
        raise Unreadable(kind, file, f"not UTF-8 (byte {e.start})") from None
    except RecursionError:
        raise Unreadable(kind, file, "nested too deep") from None
    except ValueError as e:
        pointer = LFS_POINTER if raw.startswith(b"version ") else None
        raise Unreadable(kind, file, pointer or f"not JSON ({e})") from None
    if not isinstance(value, dict):
        raise Unreadable(kind, file, "not a JSON object")
    return value


def parse_shallow(raw: bytes, kind: str, file: str) -> dict[str, Any]:
    """As `parse_object`, for a file that is walked through: `Unreadable` if deeper than `MAX_NESTING`."""
    value = parse_object(raw, kind, file)
    level: list[Any] = [value]
    for _ in range(MAX_NESTING):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return value
    raise Unreadable(kind, file, f"nested too deep (more than {MAX_NESTING} levels)")


def _inside(value: Any) -> list[Any]:
    """The objects and lists right in a value."""
    if not isinstance(value, dict | list):
        return []
    return [v for v in (value.values() if isinstance(value, dict) else value) if isinstance(v, dict | list)]


def parse_config(raw: bytes, file: str) -> dict[str, Any]:
    """Parse a config.json; raises `Unreadable` (bad-config)."""
    config = parse_shallow(raw, "bad-config", file)
    if "configuration_files" in config:
        # transformers 5.19.0 `configuration_utils.py` then reads the one that suits its own version.
        raise Unreadable("bad-config", file, "configuration_files points elsewhere, which is not followed")
    return config
