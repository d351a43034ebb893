"""A checkpoint: its config, and what the headers of its weight files say.

Standard library only; no tensor data is read.
"""

import json
import math
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal

from dflash_audit.errors import Unreadable
from dflash_audit.safetensors_header import PREFIX, Layout, header_length, parse_header

CONFIG: Final = "config.json"
WEIGHTS: Final = ".safetensors"

INDEX: Final = "model.safetensors.index.json"
"""The only index that is looked at. Source: SGLang 0.5.23
`srt/model_loader/loader.py`, `_prepare_weights`."""

PICKLED: Final = (".bin", ".pt")
"""What the engine falls back to without a safetensors file. Source: as `INDEX`."""

MAX_JSON: Final = 32 * 2**20
"""Most bytes of a JSON file that is read: the index of 100,000 tensors is a third of it."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor of a weight file: `dtype` as the header spells it, `shape` in numbers."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    file: str

    @property
    def numel(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class File:
    """A weight file that the engine reads: `size` in bytes, `tensors` how many it holds."""

    name: str
    size: int
    tensors: int


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What an engine sees of a checkpoint before it loads.

    `json_files` are the top-level `*.json` objects by file name. `tensors`
    stand in the order in which the engine reads them; a name in two files is
    there twice. `bytes_read` counts what was read of the weight files,
    `bytes_total` what they hold.
    """

    kind: Literal["local", "hub"]
    id: str
    config: dict[str, Any]
    json_files: Mapping[str, dict[str, Any]]
    tensors: tuple[Tensor, ...]
    files: tuple[File, ...]
    bytes_read: int
    bytes_total: int


@dataclass(frozen=True, slots=True)
class Header:
    """What was read of one weight file: its name, its size and that of the part read (bytes)."""

    name: str
    size: int
    bytes_read: int
    layout: Layout


def read_checkpoint(source: Path) -> Checkpoint:
    """Read a folder, or one `.safetensors` file beside its config.json.

    Raises `Unreadable`: no-such-source, no-config, bad-config, no-safetensors,
    bad-index, missing-shard, malformed-header or unreadable-file.
    """
    if not os.path.exists(source):
        raise Unreadable("no-such-source", f"{source}: no such folder or file")
    single = not source.is_dir()
    if single and not source.name.endswith(WEIGHTS):
        raise Unreadable("no-such-source", f"{source}: neither a folder nor a {WEIGHTS} file")
    folder = source.parent if single else source
    if not (folder / CONFIG).is_file():
        raise Unreadable("no-config", f"{folder}: no {CONFIG}")
    config = parse_config(_read_small(folder / CONFIG), str(folder / CONFIG))
    names = [source.name] if single else _weight_files(folder)
    headers = [_read_header(folder / name) for name in names]
    return assemble("local", str(source), config, _FolderJson(folder), headers)


def assemble(
    kind: Literal["local", "hub"],
    id: str,
    config: dict[str, Any],
    json_files: Mapping[str, dict[str, Any]],
    headers: Sequence[Header],
) -> Checkpoint:
    """Put a checkpoint together from what was read; `headers` in the order of `engine_files`.

    Within a file the engine's order is that of the names. Source: SGLang 0.5.23
    `weight_utils.py`, `buffered_multi_thread_safetensors_weights_iterator`.
    """
    return Checkpoint(
        kind,
        id,
        config,
        json_files,
        tensors=tuple(Tensor(n, *h.layout[n], h.name) for h in headers for n in sorted(h.layout)),
        files=tuple(File(h.name, h.size, len(h.layout)) for h in headers),
        bytes_read=sum(h.bytes_read for h in headers),
        bytes_total=sum(h.size for h in headers),
    )


def engine_files(
    names: Iterable[str], index: Mapping[str, Any] | None, exists: Callable[[str], bool], source: str
) -> list[str]:
    """The weight files that SGLang reads, in its order.

    `names` are the top-level file names of `source`, `index` is the parsed
    `INDEX` (None without one), and `exists` tells whether a file that the index
    names is there. Raises `Unreadable`: bad-index, missing-shard, no-safetensors.

    Source: SGLang 0.5.23 `srt/model_loader/loader.py`, `_prepare_weights`, and
    `weight_utils.py`, `filter_duplicate_safetensors_files`: a glob of
    `*.safetensors`, thinned to what the index names, sorted by name. A file that
    the index names in a folder of its own must be there, but is not read.
    """
    names = [n for n in names if not n.startswith(".")]  # a glob leaves hidden files out
    found = sorted(n for n in names if n.endswith(WEIGHTS))
    if not found:
        pickled = next((n for n in sorted(names) if n.endswith(PICKLED)), None)
        also = f" (its {pickled} is pickled, which is not read here)" if pickled else ""
        raise Unreadable("no-safetensors", f"{source}: no {WEIGHTS} file{also}")
    if index is None:
        return found[1:] if _consolidated_and_model(found) else found
    named = _index_files(index, source)
    missing = sorted(n for n in named if not exists(n))
    if missing:
        listed = ", ".join(map(repr, missing[:3])) + (", ..." if len(missing) > 3 else "")
        raise Unreadable("missing-shard", f"{source}: {INDEX} names files that are not there: {listed}")
    chosen = [n for n in found if n in named]
    if not chosen:
        raise Unreadable("no-safetensors", f"{source}: {INDEX} names none of its {WEIGHTS} files")
    return chosen


def _consolidated_and_model(found: Sequence[str]) -> bool:
    """Whether a folder holds a model in two forms, of which the engine takes the second."""
    ends = ("consolidated" + WEIGHTS, "model" + WEIGHTS)
    return len(found) == 2 and all(name.endswith(end) for name, end in zip(found, ends, strict=True))


def parse_object(raw: bytes, kind: str, file: str) -> dict[str, Any]:
    """Parse a JSON file that must hold an object; raises `Unreadable` (`kind`).

    As Python's json, which the engines read it with: NaN is taken, and of a key
    given twice the last counts.
    """
    try:
        value = json.loads(raw.decode("utf-8"))
    except UnicodeDecodeError as e:
        raise Unreadable(kind, f"{file}: not UTF-8 (byte {e.start})") from None
    except RecursionError:
        raise Unreadable(kind, f"{file}: nested too deep") from None
    except ValueError as e:
        raise Unreadable(kind, f"{file}: not JSON ({e})") from None
    if not isinstance(value, dict):
        raise Unreadable(kind, f"{file}: not a JSON object")
    return value


def parse_config(raw: bytes, file: str) -> dict[str, Any]:
    """Parse a config.json; raises `Unreadable` (bad-config)."""
    config = parse_object(raw, "bad-config", file)
    if "configuration_files" in config:
        # transformers 5.19.0 `configuration_utils.py` then reads the one that suits its own version.
        raise Unreadable("bad-config", f"{file}: configuration_files points elsewhere, which is not followed")
    return config


class _FolderJson(Mapping[str, dict[str, Any]]):
    """The `*.json` files of a folder, each read when it is looked up.

    So a broken file that no engine would open stays unread; one that is looked
    up raises `Unreadable` (bad-json).
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names = tuple(n for n in _names(folder) if _is_json(folder / n))

    def __getitem__(self, name: str) -> dict[str, Any]:
        if name not in self._names:
            raise KeyError(name)
        path = self._folder / name
        return parse_object(_read_small(path), "bad-json", str(path))

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _is_json(path: Path) -> bool:
    return path.name.endswith(".json") and not path.name.startswith(".") and path.is_file()


def _weight_files(folder: Path) -> list[str]:
    index = folder / INDEX
    parsed = parse_object(_read_small(index), "bad-index", str(index)) if index.is_file() else None
    return engine_files(_names(folder), parsed, lambda n: os.path.isfile(folder / n), str(folder))


def _index_files(index: Mapping[str, Any], source: str) -> set[str]:
    """The files that an index names, whichever tensors it says that they hold."""
    weight_map = index.get("weight_map")
    if not isinstance(weight_map, dict) or not all(isinstance(file, str) for file in weight_map.values()):
        raise Unreadable("bad-index", f"{source}: {INDEX} has no weight_map of file names")
    return set(weight_map.values())


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError as e:
        raise Unreadable("unreadable-file", f"{folder}: {e.strerror}") from None


def _read_small(path: Path) -> bytes:
    with _opened(path) as (file, size):
        if size > MAX_JSON:
            raise Unreadable("unreadable-file", f"{path}: {size} bytes of JSON, {MAX_JSON} are the most")
        return file.read()


def _read_header(path: Path) -> Header:
    with _opened(path) as (file, size):
        length = header_length(file.read(PREFIX), size, str(path))
        layout = parse_header(file.read(length), size, str(path))
    return Header(path.name, size, PREFIX + length, layout)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[BinaryIO, int]]:
    """A file open for reading and its size in bytes; raises `Unreadable` (unreadable-file)."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe would wait for ever
            raise Unreadable("unreadable-file", f"{path}: not a file")
        with open(path, "rb") as file:
            yield file, os.fstat(file.fileno()).st_size
    except OSError as e:
        raise Unreadable("unreadable-file", f"{path}: {e.strerror}") from None
