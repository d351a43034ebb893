"""The reading of a checkpoint, the same for a folder of a disk and for one of a repo."""

from collections.abc import Sequence
from typing import Final, Protocol

from dflash_audit.errors import Unreadable
from dflash_audit.sources.checkpoint import CONFIG, Checkpoint, File, JsonFiles, Origin, Tensor, parse_config
from dflash_audit.sources.tensors import Tensors
from dflash_audit.sources.weight_files import (
    INDEX,
    WEIGHTS,
    WeightFile,
    WeightMap,
    all_readable,
    engine_files,
    oddities,
    other_format,
    parse_index,
)

JSON: Final = ".json"

MOST_NAMED: Final = 5
"""Most folders that a message names."""


class Folder(Protocol):
    """Where a checkpoint lies.

    `name` is what messages call it. `names` are all names at its top level,
    sorted; a folder's ends in a slash. What cannot be read is `Unreadable`.
    """

    origin: Origin
    name: str
    names: list[str]

    def holds(self, path: str) -> bool:
        """Whether a file is there, at the top level or below."""

    def read_small(self, names: Sequence[str]) -> list[bytes]:
        """Whole files of at most `MAX_JSON` bytes."""

    def read_headers(self, names: Sequence[str]) -> list[WeightFile | Unreadable]:
        """Weight files up to the end of their headers; one that is bad does not hide the others."""


def read_folder(folder: Folder, only: str | None = None) -> Checkpoint:
    """Read a checkpoint, or one weight file of it beside its config.json.

    Raises `Unreadable`: no-config, bad-config, no-safetensors, bad-index,
    missing-shard, malformed-header, unreadable-file, and what the folder raises.
    """
    if not folder.holds(CONFIG):
        also = other_format(folder.names) or _folders_meant(folder)
        raise Unreadable("no-config", folder.name, f"no {CONFIG}{also}")
    indexed = only is None and folder.holds(INDEX)
    small = [CONFIG, INDEX] if indexed else [CONFIG]
    content = dict(zip(small, folder.read_small(small), strict=True))
    config = parse_config(content[CONFIG], f"{folder.name}/{CONFIG}")
    weight_map = parse_index(content[INDEX], f"{folder.name}/{INDEX}") if indexed else None
    files = _read_weights(folder, weight_map, only)
    return Checkpoint(
        folder.origin,
        config,
        _json_files(folder, content),
        tensors=Tensors(tensor for file in files for tensor in _tensors(file)),
        files=tuple(File(f.name, f.size, len(f.header.layout)) for f in files),
        header_bytes=sum(f.bytes_read for f in files),
        names=tuple(folder.names),
        remarks=tuple(oddities(files, weight_map, folder.names)),
    )


def _folders_meant(folder: Folder) -> str:
    """What to add about a folder of checkpoints: the folders in it to name in its place."""
    inside = [name for name in folder.names if name.endswith("/") and folder.holds(name + CONFIG)]
    if not inside:
        return ""
    more = f", and {len(inside) - MOST_NAMED} more" if len(inside) > MOST_NAMED else ""
    named = f"{', '.join(inside[:MOST_NAMED])}{more}"
    return f": name a folder in it that has one ({named})"


def _read_weights(folder: Folder, weight_map: WeightMap | None, only: str | None) -> list[WeightFile]:
    # A glob tells no folder from a file.
    globbed = [name.removesuffix("/") for name in folder.names]
    names = [only] if only else engine_files(globbed, weight_map, folder.name)
    missing = sorted(name for name in set((weight_map or {}).values()) if not folder.holds(name))
    if not names and not missing:
        raise Unreadable("no-safetensors", folder.name, f"{INDEX} names none of its {WEIGHTS} files")
    files = dict(zip(names, folder.read_headers(names), strict=True))
    told = f"{INDEX} names it, and it is not there"
    absent = {name: Unreadable("missing-shard", f"{folder.name}/{name}", told) for name in missing}
    return all_readable({**files, **absent}, folder.name)


def _tensors(file: WeightFile) -> list[Tensor]:
    """In the engine's order. Source: SGLang 0.5.23 `srt/model_loader/weight_utils.py`,
    `buffered_multi_thread_safetensors_weights_iterator`."""
    layout = file.header.layout
    return [Tensor(name, *layout[name], file.name) for name in sorted(layout)]


def _json_files(folder: Folder, content: dict[str, bytes]) -> JsonFiles:
    names = [n for n in folder.names if n.endswith(JSON) and not n.startswith(".") and folder.holds(n)]
    return JsonFiles(folder.name, names, lambda name: folder.read_small([name])[0], content)
