"""Which weight files an engine reads, and what is odd about them."""

import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from dflash_audit.errors import Unreadable
from dflash_audit.sources.checkpoint import parse_object
from dflash_audit.sources.remarks import Remark
from dflash_audit.sources.safetensors_header import Header

WEIGHTS: Final = ".safetensors"

INDEX: Final = "model.safetensors.index.json"
"""The only index that is looked at. Source: SGLang 0.5.23
`srt/model_loader/loader.py`, `_prepare_weights`."""

PICKLED: Final = (".bin", ".pt")
"""What the engine falls back to without a safetensors file. Source: as `INDEX`."""

NOT_WEIGHTS: Final = ("training_args.bin", "optimizer.bin", "optimizer.pt", "scheduler.pt", "scaler.pt")
"""Ends of pickled files that are none. Source: SGLang 0.5.23 `srt/model_loader/weight_utils.py`,
`filter_files_not_needed_for_inference`."""

OTHER_FORMATS: Final[Mapping[str, str]] = {".gguf": "GGUF", ".npz": "a NumPy archive (MLX)"}
"""End of a file name -> the format. Drafts of these have no safetensors file, and most no config.json."""

WeightMap = Mapping[str, str]
"""The index: tensor name -> the file that holds it."""


class WeightFile(NamedTuple):
    """What was read of one weight file: its size and that of the part read, in bytes, and its header."""

    name: str
    size: int
    bytes_read: int
    header: Header


def parse_index(raw: bytes, file: str) -> WeightMap:
    """Parse an index; raises `Unreadable` (bad-index), also for a path out of its folder, or with a NUL."""
    weight_map = parse_object(raw, "bad-index", file).get("weight_map")
    if not isinstance(weight_map, dict) or not all(isinstance(name, str) for name in weight_map.values()):
        raise Unreadable("bad-index", file, "no weight_map of file names")
    outside = sorted(name for name in set(weight_map.values()) if _outside(name))
    if outside:
        raise Unreadable("bad-index", file, f"names files outside its folder: {_listed(outside)}")
    return weight_map


def engine_files(names: Iterable[str], weight_map: WeightMap | None, source: str) -> list[str]:
    """The weight files that SGLang reads, in its order, some of which may not be there.

    `names` are the top-level file names of `source`, `weight_map` is its index
    (None without one). Raises `Unreadable`: no-safetensors.

    Source: SGLang 0.5.23 `srt/model_loader/loader.py`, `_prepare_weights`, and
    `weight_utils.py`, `filter_duplicate_safetensors_files`: a glob of
    `*.safetensors`, thinned to what the index names, sorted by name. A file that
    the index names in a folder of its own must be there, but is not read.
    """
    names = [n for n in names if not n.startswith(".")]  # a glob leaves hidden files out
    found = sorted(n for n in names if n.endswith(WEIGHTS))
    if not found:
        raise Unreadable("no-safetensors", source, f"no {WEIGHTS} file{other_format(names)}")
    if weight_map is None:
        return found[1:] if _consolidated_and_model(found) else found
    listed = set(weight_map.values())
    return [n for n in found if n in listed]


def other_format(names: Iterable[str]) -> str:
    """What to add for a reader where there is no safetensors file: the weights that are there instead."""
    names = sorted(names)
    if any(name.endswith(WEIGHTS) for name in names):
        return ""
    for name in names:
        form = next((form for end, form in OTHER_FORMATS.items() if name.endswith(end)), None)
        if name.endswith(PICKLED) and not name.endswith(NOT_WEIGHTS):
            form = "pickled"
        if form:
            return f" ({name} is {form}, which is not read here)"
    return ""


def all_readable(files: Mapping[str, WeightFile | Unreadable], source: str) -> list[WeightFile]:
    """The files by their names; raises one `Unreadable` that names every bad one of them."""
    bad = {name: file for name, file in files.items() if isinstance(file, Unreadable)}
    if len(bad) == 1:
        raise next(iter(bad.values()))
    if bad:
        reasons: dict[str, list[str]] = {}
        for name, error in bad.items():
            reasons.setdefault(error.reason, []).append(name)
        told = "; ".join(f"{', '.join(names)}: {reason}" for reason, names in reasons.items())
        kind = next(iter(bad.values())).kind
        raise Unreadable(kind, source, f"{len(bad)} of {len(files)} weight files cannot be read: {told}")
    return [file for file in files.values() if isinstance(file, WeightFile)]


def oddities(
    files: Sequence[WeightFile], weight_map: WeightMap | None, names: Iterable[str]
) -> Iterator[Remark]:
    """What is odd about `files`, those that the engine reads in its order, out of a folder of `names`."""
    yield from _in_a_foreign_layout(files)
    yield from _held_twice(files)
    if weight_map is not None:
        yield from _index_and_files_disagree(files, weight_map)
        yield from _left_out(files, names)


def _held_twice(files: Sequence[WeightFile]) -> Iterator[Remark]:
    for file in files:
        for name in file.header.repeated:
            message = f"The header of {file.name} names it twice: the last entry counts."
            yield Remark("duplicate-tensor", name, message)
    for name, held_by in _holders(files).items():
        if len(held_by) > 1:
            message = f"It is in {' and in '.join(held_by)}: the engine loads each, and {held_by[-1]} stays."
            yield Remark("duplicate-tensor", name, message)


def _holders(files: Sequence[WeightFile]) -> Mapping[str, Sequence[str]]:
    """Tensor name -> the files that hold it, in the engine's order."""
    holders: dict[str, list[str]] = {}
    for file in files:
        for name in file.header.layout:
            holders.setdefault(name, []).append(file.name)
    return holders


def _index_and_files_disagree(files: Sequence[WeightFile], weight_map: WeightMap) -> Iterator[Remark]:
    holders = _holders(files)
    for name, listed in weight_map.items():
        held_by = holders.get(name, [])
        if listed not in held_by:
            where = (
                f"it is in {held_by[0]}, and loaded from there"
                if held_by
                else "no file that is read holds it"
            )
            yield Remark("wrong-index-entry", name, f"The index puts it into {listed}, but {where}.")
    for name, held_by in holders.items():
        if name not in weight_map:
            message = (
                f"It is in {held_by[-1]} and not in the index: the engine loads whole files, so it comes too."
            )
            yield Remark("unlisted-tensor", name, message)


def _left_out(files: Sequence[WeightFile], names: Iterable[str]) -> Iterator[Remark]:
    read = {file.name for file in files}
    for name in sorted(names):
        # A second form of the same weights, which belongs beside them.
        second = name.startswith("consolidated")
        if name.endswith(WEIGHTS) and name not in read and not name.startswith(".") and not second:
            yield Remark(
                "unlisted-file", name, "The index does not name this file: the engine does not read it."
            )


def _in_a_foreign_layout(files: Sequence[WeightFile]) -> Iterator[Remark]:
    """One remark a format whose tensors these are, though they lie in safetensors files."""
    tensors = {name: dtype for file in files for name, (dtype, _) in file.header.layout.items()}
    exl3 = next((name for name in tensors if name.endswith(".trellis")), None)
    mlx = next((n for n in tensors if n.endswith(".scales") and tensors.get(_weight_of(n)) == "U32"), None)
    for form, name in (("EXL3", exl3), ("MLX", mlx)):
        if name is not None:
            message = f"The weights are quantized in the layout of {form}, which the engine does not read."
            yield Remark("foreign-layout", name, message)


def _weight_of(scales: str) -> str:
    return scales.removesuffix("scales") + "weight"


def _consolidated_and_model(found: Sequence[str]) -> bool:
    """Whether a folder holds a model in two forms, of which the engine takes the second."""
    ends = ("consolidated" + WEIGHTS, "model" + WEIGHTS)
    return len(found) == 2 and all(name.endswith(end) for name, end in zip(found, ends, strict=True))


def _outside(name: str) -> bool:
    """Whether no file of the folder has this name."""
    top = posixpath.normpath(name).partition("/")[0]
    return posixpath.isabs(name) or top == ".." or "\0" in name


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:3])) + (", ..." if len(names) > 3 else "")
