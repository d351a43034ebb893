"""The map as a table, for those who read it: alike cells of several layers in one row."""

from collections.abc import Iterable, Sequence
from typing import Final

from dflash_audit.fold import pattern, title
from dflash_audit.formats.html.cells import Box, Cell
from dflash_audit.formats.html.markup import Markup, element, joined
from dflash_audit.formats.html.states import STATES

COLUMNS: Final = ("engine", "state", "name", "shape", "dtype", "prefix asked", "scheme", "from", "note")
MOST_ROWS: Final = 3000
"""A browser stays quick with so many; the worst stand first, and the table says how many are left out."""


def table(engines: Iterable[tuple[str, Sequence[Box]]]) -> Markup:
    """All cells of all engines, the worst first."""
    rows = [(name, alike) for name, boxes in engines for alike in _alike(boxes)]
    rows.sort(key=lambda row: STATES.index(row[1][0][1].state))
    left_out = len(rows) - MOST_ROWS
    note = f"{left_out:,} rows more are left out here; the JSON report has them." if left_out > 0 else ""
    return joined(
        element(
            "table",
            element("thead", element("tr", *(element("th", column, scope="col") for column in COLUMNS))),
            element("tbody", *(_row(name, alike) for name, alike in rows[:MOST_ROWS])),
        ),
        element("p", note) if note else "",
    )


def _alike(boxes: Sequence[Box]) -> Iterable[list[tuple[Box, Cell]]]:
    """The cells, those together that differ by their layer only, each with its module."""
    alike: dict[tuple[object, ...], list[tuple[Box, Cell]]] = {}
    for box in boxes:
        for cell in box.cells:
            sources = tuple(pattern(source.name) for source in cell.sources)
            key = (pattern(cell.target), cell.state, cell.shape, cell.dtype, sources, cell.is_tensor)
            alike.setdefault(key, []).append((box, cell))
    return alike.values()


def _row(engine: str, members: Sequence[tuple[Box, Cell]]) -> Markup:
    box, cell = members[0]
    prefixes = title(b.prefix for b, _ in members if b.prefix is not None)
    sources = [source.name for _, c in members for source in c.sources] if not cell.is_tensor else []
    values = (
        engine,
        cell.state.word,
        title(c.target if not c.is_tensor else c.name for _, c in members),
        " x ".join(map(str, cell.shape)) or "scalar",
        cell.dtype,
        prefixes,
        box.scheme or "",
        title(dict.fromkeys(sources)),
        cell.note,
    )
    cells = [element("td", value) for value in values]
    cells[1] = element("td", element("span", cell.state.word, class_=f"word {cell.state.id}"))
    return element("tr", *cells)
