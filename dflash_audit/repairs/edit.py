"""A change of config.json as a value: where, from what, to what, and why."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final


class Absent(Enum):
    """What stands at a path that is not there."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT


@dataclass(frozen=True, slots=True)
class Edit:
    """One key of config.json, by the keys down to it, that gets another value.

    `old` and `new` are JSON values, or ABSENT for a key that is not there. `why`
    is a sentence; `doubt` is what nothing in the checkpoint tells about it, None
    where the checkpoint proves the value.
    """

    path: tuple[str, ...]
    old: Any
    new: Any
    why: str
    doubt: str | None = None

    @property
    def key(self) -> str:
        return ".".join(self.path)


Proposal = tuple[Edit, ...]
"""Edits that make sense together alone."""


def at(config: Mapping[str, Any], path: Iterable[str]) -> Any:
    """The value at a path, ABSENT where there is none."""
    value: Any = config
    for key in path:
        if not isinstance(value, Mapping) or key not in value:
            return ABSENT
        value = value[key]
    return value


def edit(
    config: Mapping[str, Any], path: tuple[str, ...], new: Any, why: str, doubt: str | None = None
) -> Edit | None:
    """The edit that puts `new` at a path; None where it is there, or the path leads through no object.

    A null on the way gives way to an object.
    """
    for length in range(1, len(path)):
        holder = at(config, path[:length])
        if holder is not ABSENT and holder is not None and not isinstance(holder, Mapping):
            return None
    old = at(config, path)
    return None if same(old, new) else Edit(path, old, new, why, doubt)


def apart(edits: Iterable[Edit]) -> Proposal:
    """The same change, in which an object that gives way to another is an edit of each key that differs.

    What the new one takes away stands first, what it sets anew next, what it adds last.
    """
    found = [leaf for each in edits for leaf in _leaves(each)]
    return tuple(sorted(found, key=lambda each: (each.new is not ABSENT, each.old is ABSENT)))


def _leaves(whole: Edit) -> Iterator[Edit]:
    old, new = whole.old, whole.new
    if not (isinstance(old, Mapping) and isinstance(new, Mapping) and old and new):
        yield whole
        return
    for key in dict.fromkeys((*old, *new)):
        one, other = old.get(key, ABSENT), new.get(key, ABSENT)
        if not same(one, other):
            yield from _leaves(Edit((*whole.path, key), one, other, whole.why, whole.doubt))


def edited(config: Mapping[str, Any], edits: Iterable[Edit]) -> dict[str, Any]:
    """The config after the edits, in new objects wherever something changes; a parent that lacks is made."""
    changed = dict(config)
    for each in edits:
        changed = _put(changed, each.path, each.new)
    return changed


def _put(holder: Mapping[str, Any], path: tuple[str, ...], new: Any) -> dict[str, Any]:
    key, *rest = path
    changed = dict(holder)
    if rest:
        inner = changed.get(key)
        changed[key] = _put(inner if isinstance(inner, Mapping) else {}, tuple(rest), new)
    elif new is ABSENT:
        changed.pop(key, None)
    else:
        changed[key] = new
    return changed


def same(one: Any, other: Any) -> bool:
    """Whether two values are written alike: 1, 1.0 and true are three, and so is another order of keys."""
    if one is ABSENT or other is ABSENT:
        return one is other
    return json.dumps(one) == json.dumps(other)
