"""A JSON text brought to another value, so that every byte that need not change stays.

The standard parser gives no places, so the text is read once more for them. Keys,
numbers, escapes, indentation and order stay as they are written; what is new takes
the look of what stands beside it.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dflash_audit.repairs.edit import same

SPACE: Final = re.compile(r"[ \t\n\r]*")
DECODER: Final = json.JSONDecoder()


class NotEditable(Exception):
    """The text cannot be changed without a guess; `reason` says why, in words for a person."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(slots=True)
class Node:
    """A value of the text at [start, end).

    Of an object `keys` are the places of the keys, `names` what they say; `children`
    are the values of an object or a list.
    """

    start: int
    end: int
    names: list[str] = field(default_factory=list)
    keys: list[tuple[int, int]] = field(default_factory=list)
    children: list["Node"] = field(default_factory=list)

    def begins(self, index: int) -> int:
        """Where the member of that index begins: at its key, or a list's at its value."""
        return self.keys[index][0] if self.keys else self.children[index].start


Change = tuple[int, int, str]
"""What stands at [start, end) gives way to the text."""


def rewritten(text: str, value: Mapping[str, Any]) -> str:
    """The text changed as little as can be so that it says `value`.

    Raises `NotEditable` for a key that stands twice in one object, of which the text
    has one too many to tell, and for what is nested too deep.
    """
    try:
        root, _ = _read(text, SPACE.match(text, 0).end())  # type: ignore[union-attr]
        changes: list[Change] = []
        _object(text, root, json.loads(text), value, changes)
    except RecursionError:
        raise NotEditable("it is nested too deep") from None
    for start, end, new in sorted(changes, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _read(text: str, at: int) -> tuple[Node, int]:
    if text[at] == "{" or text[at] == "[":
        return _read_members(text, at, text[at] == "{")
    _, end = DECODER.raw_decode(text, at)
    return Node(at, end), end


def _skip(text: str, at: int) -> int:
    found = SPACE.match(text, at)
    assert found is not None  # it matches nothing too
    return found.end()


def _read_members(text: str, start: int, is_object: bool) -> tuple[Node, int]:
    node, at = Node(start, start), _skip(text, start + 1)
    seen: set[str] = set()
    while text[at] not in "}]":
        if is_object:
            name, end = DECODER.raw_decode(text, at)
            if name in seen:
                raise NotEditable(f"the key {name!r} stands in it twice: remove the one that is not meant")
            seen.add(name)
            node.names.append(name)
            node.keys.append((at, end))
            at = _skip(text, _skip(text, end) + 1)
        child, at = _read(text, at)
        node.children.append(child)
        at = _skip(text, at)
        if text[at] == ",":
            at = _skip(text, at + 1)
    node.end = at + 1
    return node, node.end


def _value(text: str, node: Node, old: Any, new: Any, changes: list[Change]) -> None:
    """Bring one value to another."""
    if same(old, new):
        return
    if isinstance(old, dict) and isinstance(new, Mapping):
        _object(text, node, old, new, changes)
    elif isinstance(old, list) and isinstance(new, list) and _grows(old, new):
        _list(text, node, old, new, changes)
    else:
        changes.append((node.start, node.end, _written(text, new, _line_indent(text, node.start))))


def _object(
    text: str, node: Node, old: Mapping[str, Any], new: Mapping[str, Any], changes: list[Change]
) -> None:
    gone = [index for index, name in enumerate(node.names) if name not in new]
    for index, name in enumerate(node.names):
        if name in new:
            _value(text, node.children[index], old[name], new[name], changes)
    added = [name for name in new if name not in old]
    if node.names == sorted(node.names):
        added.sort()
    look = _look(text, node)
    before: dict[int, list[str]] = {}
    for name in added:
        member = json.dumps(name) + look.colon + _written(text, new[name], look.indent)
        before.setdefault(_place(node.names, name), []).append(member)
    _rewrite_members(node, gone, before, look, changes)


def _place(names: Sequence[str], name: str) -> int:
    """Where a new key goes: among keys in order to its place, else to the end."""
    if list(names) != sorted(names):
        return len(names)
    return sum(other < name for other in names)


def _grows(old: Sequence[Any], new: Sequence[Any]) -> bool:
    """Whether a list only loses entries and gains others at its end."""
    kept = _kept(old, new)
    return bool(kept) and all(same(old[index], entry) for index, entry in zip(kept, new, strict=False))


def _kept(old: Sequence[Any], new: Sequence[Any]) -> list[int]:
    """Indices of the old entries that the new list begins with, in order."""
    kept, at = [], 0
    for index, entry in enumerate(old):
        if at < len(new) and same(entry, new[at]):
            kept.append(index)
            at += 1
    return kept


def _list(text: str, node: Node, old: Sequence[Any], new: Sequence[Any], changes: list[Change]) -> None:
    kept = _kept(old, new)
    look = _look(text, node)
    gone = [index for index in range(len(old)) if index not in kept]
    added = [_written(text, entry, look.indent) for entry in new[len(kept) :]]
    _rewrite_members(node, gone, {len(old): added} if added else {}, look, changes)


@dataclass(frozen=True, slots=True)
class Look:
    """How the members of one object or list are set.

    `lead` stands before the first, `between` after each comma, `tail` after the
    last; `indent` is the indentation of a member that stands on a line of its own.
    """

    lead: str
    between: str
    tail: str
    colon: str
    indent: str | None


def _look(text: str, node: Node) -> Look:
    colon = next(
        (text[end : child.start] for (_, end), child in zip(node.keys, node.children, strict=False)),
        _colon(text),
    )
    if node.children:
        lead = text[node.start + 1 : node.begins(0)]
        tail = text[node.children[-1].end : node.end - 1]
        between = lead if "\n" in lead else " " if ", " in text or len(node.children) < 2 else ""
        if len(node.children) > 1:
            between = text[node.children[0].end : node.begins(1)].partition(",")[2]
        return Look(lead, between, tail, colon, _after_newline(lead))
    outer = _line_indent(text, node.start)
    if outer is None or "\n" not in text.strip():
        return Look("", " ", "", colon, None)
    newline = _newline(text)
    inner = outer + _unit(text)
    return Look(newline + inner, newline + inner, newline + outer, colon, inner)


def _rewrite_members(
    node: Node, gone: Sequence[int], before: Mapping[int, Sequence[str]], look: Look, changes: list[Change]
) -> None:
    """Take members out and put new ones before those of an index, or at the end."""
    count = len(node.children)
    left = [index for index in range(count) if index not in gone]
    if not left:
        new = [member for index in sorted(before) for member in before[index]]
        if gone or new:
            body = look.lead + f",{look.between}".join(new) + look.tail if new else ""
            changes.append((node.start + 1, node.end - 1, body))
        return
    for index in gone:
        if index < left[0]:
            changes.append((node.begins(index), node.begins(index + 1), ""))
        else:
            changes.append((node.children[index - 1].end, node.children[index].end, ""))
    for index, members in before.items():
        ahead = next((i for i in left if i >= index), None)
        if ahead is None:
            at = node.children[count - 1].end
            changes.append((at, at, "".join(f",{look.between}{member}" for member in members)))
        else:
            at = node.begins(ahead)
            changes.append((at, at, "".join(f"{member},{look.between}" for member in members)))


def _written(text: str, value: Any, indent: str | None) -> str:
    """A value as the text has its own: over lines with its indentation, or on one."""
    if indent is None or not isinstance(value, dict | list) or not value:
        compact = ":" in text and ": " not in text
        return json.dumps(value, separators=(",", ":") if compact else None)
    lines = json.dumps(value, indent=_unit(text) or None).split("\n")
    return (_newline(text) + indent).join(lines)


def _line_indent(text: str, at: int) -> str | None:
    """The indentation of the line that a value begins on; None where the text has no lines."""
    line = text[text.rfind("\n", 0, at) + 1 :]
    return line[: len(line) - len(line.lstrip(" \t"))] if "\n" in text.strip() else None


def _after_newline(space: str) -> str | None:
    return space.rpartition("\n")[2] if "\n" in space else None


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _unit(text: str) -> str:
    """One step of indentation: that of the first indented line."""
    found = re.search(r"\n([ \t]+)\S", text)
    return found[1] if found else ""


def _colon(text: str) -> str:
    return ": " if ": " in text or ":" not in text else ":"
