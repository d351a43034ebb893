"""Which cells a finding is about."""

from collections.abc import Iterable, Mapping, Sequence

from dflash_audit.formats.html.cells import Box
from dflash_audit.formats.told import Told

Where = tuple[int, int]
"""A cell of one engine: the index of its box, and its own in there."""


def linked(findings: Sequence[Told], engine: str, boxes: Sequence[Box]) -> Mapping[Where, list[int]]:
    """Cell -> the indices of the findings about it, of those that hold for the engine or for none.

    A subject names a parameter, `parameter[shard]`, a tensor, or a module with all of its cells.
    """
    named = _named(boxes)
    found: dict[Where, list[int]] = {}
    for index, told in enumerate(findings):
        if told.engines and engine not in told.engines:
            continue
        subjects = told.finding.subjects or (told.finding.subject,)
        for where in dict.fromkeys(_cells(subjects, named)):
            found.setdefault(where, []).append(index)
    return found


def _cells(subjects: Iterable[str], named: Mapping[str, list[Where]]) -> Iterable[Where]:
    for subject in subjects:
        yield from named.get(subject, ())


def _named(boxes: Sequence[Box]) -> Mapping[str, list[Where]]:
    """Every name that may be a subject -> the cells that it means."""
    found: dict[str, list[Where]] = {}
    for i, box in enumerate(boxes):
        for j, cell in enumerate(box.cells):
            sources = [source.name for source in cell.sources]
            modules = [source.rpartition(".")[0] for source in sources]
            for name in {box.name, cell.name, cell.target, *sources, *modules} - {""}:
                found.setdefault(name, []).append((i, j))
    return found
