"""Two checkpoints side by side: what is stored, and what each engine builds and loads of it.

Both are taken as their JSON reports tell of them, so a difference is one of the contract's values.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dflash_audit.errors import Unreadable
from dflash_audit.formats.json_report import document
from dflash_audit.report import FOUND, PASSED, UNREADABLE, Report

Fields = Mapping[str, Any]

STORED: Final = ("dtype", "shape")
OUTCOME: Final = ("outcome", "targets", "cast")
MODULE: Final = ("module_class", "prefix", "scheme")
PARAMETER: Final = ("dtype", "shape")
RESIZED: Final = ("holds", "took")
ENGINE: Final = ("verdict", "model_class", "quantization", "refusal")
"""The keys of the report's entries that are compared."""


@dataclass(frozen=True, slots=True)
class Change:
    """One name with its fields on both sides, None where a side does not have it."""

    name: str
    a: Fields | None
    b: Fields | None

    @property
    def differing(self) -> list[str]:
        """The fields that differ; all of them where only one side has the name."""
        if self.a is None or self.b is None:
            return [*(self.a or self.b or {})]
        return [field for field in self.a if self.a[field] != self.b[field]]


@dataclass(frozen=True, slots=True)
class EngineDifference:
    """What one engine does differently.

    `a` and `b` hold the verdict, the class, the method and the refusal. `modules` are told of only
    where both trees were built, `tensors` where both were loaded: those that go elsewhere, and
    those of one side alone that go nowhere. `missing` has a parameter's unfilled shards, `resized`
    how many numbers it holds and took where that is another amount.
    """

    name: str
    a: Fields
    b: Fields
    modules: tuple[Change, ...] = ()
    parameters: tuple[Change, ...] = ()
    missing: tuple[Change, ...] = ()
    tensors: tuple[Change, ...] = ()
    resized: tuple[Change, ...] = ()

    @property
    def same(self) -> bool:
        return self.a == self.b and not any(
            (self.modules, self.parameters, self.missing, self.tensors, self.resized)
        )


@dataclass(frozen=True, slots=True)
class Difference:
    """Two reports and how they differ, nothing where one has no checkpoint.

    `tensors` are those that are stored otherwise, whatever an engine makes of them.
    """

    a: Report
    b: Report
    tensors: tuple[Change, ...] = ()
    engines: tuple[EngineDifference, ...] = ()

    @property
    def error(self) -> Unreadable | None:
        """Of the first that could not be read."""
        return self.a.error or self.b.error

    @property
    def same(self) -> bool:
        """Whether both could be read and nothing differs."""
        return self.error is None and not self.tensors and all(engine.same for engine in self.engines)

    @property
    def exit_code(self) -> int:
        """3 where one could not be read, 1 where they differ, 0 where they do not."""
        if self.error is not None:
            return UNREADABLE
        return PASSED if self.same else FOUND


def difference(a: Report, b: Report, engines: Iterable[str]) -> Difference:
    """How two reports differ, on these engines."""
    if a.error is not None or b.error is not None:
        return Difference(a, b)
    of_a, of_b = _by_name(document(a)["engines"]), _by_name(document(b)["engines"])
    return Difference(
        a,
        b,
        tuple(_changes(_stored(a), _stored(b))),
        tuple(_engine(name, of_a[name], of_b[name]) for name in of_a if name in engines),
    )


def _stored(report: Report) -> dict[str, Fields]:
    assert report.checkpoint is not None
    return {t.name: {"dtype": t.dtype, "shape": list(t.shape)} for t in report.checkpoint.tensors}


def _engine(name: str, a: Fields, b: Fields) -> EngineDifference:
    sides = {key: a[key] for key in ENGINE}, {key: b[key] for key in ENGINE}
    built = bool(a["parameters"] and b["parameters"])
    loaded = bool(a["tensors"] and b["tensors"])
    return EngineDifference(
        name,
        *sides,
        modules=tuple(_changes(_modules(a), _modules(b))) if built else (),
        parameters=tuple(_changes(_each(a, "parameters", PARAMETER), _each(b, "parameters", PARAMETER)))
        if built
        else (),
        missing=tuple(_unfilled(a, b)) if built else (),
        tensors=tuple(_gone_elsewhere(a, b)) if loaded else (),
        resized=tuple(_changes(_resized(a), _resized(b))) if loaded else (),
    )


def _changes(a: Mapping[str, Fields], b: Mapping[str, Fields]) -> Iterator[Change]:
    """What differs, in the order of the first side and then of the second."""
    for name in dict.fromkeys((*a, *b)):
        if a.get(name) != b.get(name):
            yield Change(name, a.get(name), b.get(name))


def _by_name(entries: Iterable[Fields]) -> dict[str, Fields]:
    return {entry["name"]: entry for entry in entries}


def _each(engine: Fields, kind: str, keys: Iterable[str]) -> dict[str, Fields]:
    """The engine's parameters or tensors by name, with these keys alone."""
    return {entry["name"]: {key: entry[key] for key in keys} for entry in engine[kind]}


def _modules(engine: Fields) -> dict[str, Fields]:
    """The modules that have parameters, by name."""
    return {
        entry["name"].rpartition(".")[0]: {key: entry[key] for key in MODULE}
        for entry in engine["parameters"]
    }


def _unfilled(a: Fields, b: Fields) -> Iterator[Change]:
    """Parameters with a gap on one side that the other does not have, or has otherwise."""
    return _changes(*(_where(_each(side, "parameters", ("missing",)), _has_gap) for side in (a, b)))


def _gone_elsewhere(a: Fields, b: Fields) -> Iterator[Change]:
    for change in _changes(_each(a, "tensors", OUTCOME), _each(b, "tensors", OUTCOME)):
        both = change.a is not None and change.b is not None
        if both or any(side is not None and side["outcome"] != "loaded" for side in (change.a, change.b)):
            yield change


def _resized(engine: Fields) -> dict[str, Fields]:
    return {each["parameter"]: {key: each[key] for key in RESIZED} for each in engine["resized"]}


def _has_gap(entry: Fields) -> bool:
    return bool(entry["missing"])


def _where(entries: Mapping[str, Fields], wanted: Callable[[Fields], bool]) -> dict[str, Fields]:
    return {name: entry for name, entry in entries.items() if wanted(entry)}
