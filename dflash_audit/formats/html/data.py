"""The map as data: what the scripts of the page read."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from dflash_audit.formats.clean import clean
from dflash_audit.formats.html.cells import Box, Cell
from dflash_audit.formats.html.links import linked
from dflash_audit.formats.html.states import STATES
from dflash_audit.formats.told import Told
from dflash_audit.sources.checkpoint import Tensor


def document(engines: Iterable[tuple[str, Sequence[Box]]], findings: Sequence[Told]) -> dict[str, Any]:
    """The object of the map; keys that say nothing are left out, for there are many cells.

    `states` and a cell's `state` count in the order of the legend; `findings` are
    indices of the page's list.
    """
    return {
        "states": [{"id": s.id, "letter": s.letter, "word": s.word, "meaning": s.meaning} for s in STATES],
        "findings": [{"rule": told.finding.rule, "severity": told.finding.severity} for told in findings],
        "engines": [
            {"name": clean(name), "modules": _modules(name, boxes, findings)} for name, boxes in engines
        ],
    }


def embedded(value: Any) -> str:
    """`value` as JSON that is inert inside a script element: ASCII, and without a character of markup."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _modules(engine: str, boxes: Sequence[Box], findings: Sequence[Told]) -> list[dict[str, Any]]:
    about = linked(findings, engine, boxes)
    return [
        _told(
            name=clean(box.name),
            module_class=box.module_class and clean(box.module_class),
            prefix=None if box.prefix is None else clean(box.prefix),
            scheme=box.scheme and clean(box.scheme),
            cells=[_cell(cell, about.get((i, j), [])) for j, cell in enumerate(box.cells)],
        )
        for i, box in enumerate(boxes)
    ]


def _cell(cell: Cell, findings: list[int]) -> dict[str, Any]:
    return _told(
        label=clean(cell.label),
        name=clean(cell.name),
        shard=None if cell.shard is None else str(cell.shard),
        state=STATES.index(cell.state),
        size=cell.size,
        shape=list(cell.shape),
        dtype=cell.dtype,
        sources=[_source(source) for source in cell.sources] if not cell.is_tensor else None,
        note=clean(cell.note) or None,
        findings=findings or None,
        tensor=cell.is_tensor or None,
    )


def _source(tensor: Tensor) -> list[Any]:
    return [clean(tensor.name), tensor.dtype, list(tensor.shape)]


def _told(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}
