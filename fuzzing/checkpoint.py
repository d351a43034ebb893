"""The audit of two engines and its report: an input picks them, the draft, the server and a format.

One engine decides; every rule, what is tried on edited drafts for a hint, and what the other one says.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from dflash_audit.auditing import judged
from dflash_audit.engine_run import Conditions
from dflash_audit.engines import ENGINES, engine
from dflash_audit.errors import Unreadable
from dflash_audit.facts import Facts
from dflash_audit.formats import FORMATS, render
from dflash_audit.formats.screen import Screen
from dflash_audit.report import Report
from dflash_audit.sources.checkpoint import Checkpoint
from fuzzing import drafted
from fuzzing.draw import Draw
from fuzzing.endless import endless_at_once

IN_TURN: Final = ("json",) * 8 + tuple(FORMATS)
"""The formats; JSON for half of the inputs, for a page takes longer than the audit."""


def check(data: bytes) -> None:
    """Told apart by its words or reported in a format that a program or a terminal can take."""
    draw = Draw(data)
    first, shown = draw.one_of([*ENGINES]), draw.one_of(IN_TURN)
    second = draw.one_of([name for name in ENGINES if name != first])
    try:
        checkpoint, conditions = drafted.checkpoint(draw), drafted.conditions(draw)
        with endless_at_once():
            report = _audited(checkpoint, conditions, (first, second))
            LOOKS[shown](render(shown, report, Screen()))
    except Unreadable as refused:
        assert refused.message.isprintable()


def _printable(text: str) -> None:
    assert all(line.isprintable() for line in text.split("\n"))


LOOKS: Final[Mapping[str, Callable[[str], Any]]] = {
    **dict.fromkeys(FORMATS, lambda text: text.encode("utf-8", "backslashreplace")),
    "json": json.loads,
    "text": _printable,
    "github": _printable,
}


def _audited(checkpoint: Checkpoint, conditions: Conditions, names: tuple[str, ...]) -> Report:
    runs = tuple(engine(name).replay(checkpoint, conditions) for name in names)
    gating = frozenset(names[:1])
    of = judged(Facts(checkpoint, runs, gating, conditions))
    return Report(checkpoint.origin, checkpoint, runs, gating, of.findings, of.skips, conditions)
