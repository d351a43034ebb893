"""Makes a case smaller while something still holds of it."""

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from random_drafts.case import Case

Holds = Callable[[Case], bool]


def shrunk(case: Case, holds: Holds, most: int = 400) -> Case:
    """The smallest case found of which `holds` is still true, after at most `most` tries.

    A step takes something away: tensors by halves and one by one, files, options,
    keys of the configs and entries of their lists. It starts over after each
    that keeps `holds`, until none does.
    """
    tries = 0
    while True:
        for smaller in steps(case):
            tries += 1
            if tries > most:
                return case
            if holds(smaller):
                case = smaller
                break
        else:
            return case


def size(case: Case) -> int:
    """What a reader has to take in."""
    return len(case.tensors) + len(case.options) + _entries(case.config) + _entries(case.files)


def _entries(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(_entries, inner))


def steps(case: Case) -> Iterator[Case]:
    """Every case that lacks one thing more, those that lack most first."""
    names = sorted(case.tensors)
    for gone in parts(names):
        yield _without_tensors(case, gone)
    for at in range(0, len(case.options), 2):
        yield _changed(case, options=[*case.options[:at], *case.options[at + 2 :]])
    if case.shards:
        yield _changed(case, shards={})
    for name in case.files:
        yield _changed(case, files={n: content for n, content in case.files.items() if n != name})
    for place in places(case.config):
        yield _changed(case, config=without(case.config, place))
    for name, content in case.files.items():
        for place in places(content):
            yield _changed(case, files={**case.files, name: without(content, place)})


def parts(names: Sequence[str]) -> Iterator[Sequence[str]]:
    """All names, their halves, quarters and so on, down to each of them."""
    width = len(names)
    while width:
        for at in range(0, len(names), width):
            yield names[at : at + width]
        width //= 2


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path to every key and entry in a JSON value, the outer before the inner."""
    keys = [*value] if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield (*at, key)
    for key in keys:
        yield from places(value[key], (*at, key))


def without(value: Any, place: tuple[Any, ...]) -> Any:
    """The JSON value without what stands at `place`."""
    smaller = copy.deepcopy(value)
    holder = smaller
    for key in place[:-1]:
        holder = holder[key]
    del holder[place[-1]]
    return smaller


def _without_tensors(case: Case, gone: Sequence[str]) -> Case:
    left = {name: spec for name, spec in case.tensors.items() if name not in set(gone)}
    shards = {file: [name for name in names if name in left] for file, names in case.shards.items()}
    return _changed(case, tensors=left, shards=shards)


def _changed(case: Case, **changes: Any) -> Case:
    kept = {name: copy.deepcopy(getattr(case, name)) for name in ("config", "tensors", "files", "options")}
    shards = copy.deepcopy(case.shards)
    return Case(**{"rng": case.rng, "sizes": case.sizes, **kept, "shards": shards, **changes})
