"""A sweep as a table: a row a source, a column an engine, the counts below."""

from collections.abc import Sequence
from typing import Final, cast

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dflash_audit.formats.clean import clean
from dflash_audit.formats.console import Part, written
from dflash_audit.formats.screen import Screen
from dflash_audit.formats.text import VERDICT_COLORS
from dflash_audit.report import FOUND, PASSED, UNREADABLE
from dflash_audit.sweeping.row import Row
from dflash_audit.verdict import Verdict

UNJUDGED: Final = "not judged"
ENDS: Final = {PASSED: "passed", FOUND: "failed", UNREADABLE: "not read"}
"""How an audit ended; one that no deciding engine judged passed nothing, whatever its exit code."""

VERDICTS: Final[tuple[Verdict, ...]] = ("pass", "warn", "fail", "skipped")


def render(rows: Sequence[Row], exit_code: int, screen: Screen, most: int | None = None) -> str:
    """All rows in their order; where there are more than `most`, so many of those that did not pass."""
    shown = [*rows]
    if most is not None and len(rows) > most:
        shown = [row for row in rows if _end(row) != ENDS[PASSED]][:most]
    parts: list[Part] = [_table(shown), Text()] if shown else []
    if len(shown) < len(rows):
        parts.append(Text(f"{len(rows) - len(shown):,} more; --format table shows all", style="dim"))
    parts += [Text(line) for line in (*_counts(rows), f"exit code {exit_code}")]
    return written(parts, screen)


def _end(row: Row) -> str:
    if row.exit_code == PASSED and not row.judged:
        return UNJUDGED
    return ENDS.get(row.exit_code, str(row.exit_code))


def _engines(rows: Sequence[Row]) -> list[str]:
    return [*dict.fromkeys(engine for row in rows for engine in row.verdicts)]


def _table(rows: Sequence[Row]) -> Table:
    """The sources and what is wrong with each share the last column, which 80 characters leave room for."""
    engines = _engines(rows)
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("", no_wrap=True)
    for engine in engines:
        table.add_column(Text(clean(engine).replace("-", "\n", 1)), no_wrap=True)
    table.add_column("source\nand why", overflow="fold")
    for row in rows:
        verdicts = [row.verdicts.get(engine, "-") for engine in engines]
        table.add_row(
            Text(_end(row), style="" if row.exit_code == PASSED else "bold red"),
            *(Text(verdict, style=VERDICT_COLORS.get(cast(Verdict, verdict), "")) for verdict in verdicts),
            _source(row),
        )
    return table


def _source(row: Row) -> RenderableType:
    named, why = Text(clean(row.name)), clean(row.cause.removeprefix(f"{row.id}: "))
    return Group(named, Padding(Text(why), (0, 0, 0, 2))) if why else named


def _counts(rows: Sequence[Row]) -> list[str]:
    ends = [_end(row) for row in rows]
    words = [*ENDS.values(), *([UNJUDGED] if UNJUDGED in ends else [])]
    told = ", ".join(f"{ends.count(word):,} {word}" for word in words)
    lines = [f"{len(rows):,} source{'' if len(rows) == 1 else 's'}: {told}"]
    for engine in _engines(rows):
        verdicts = [row.verdicts.get(engine) for row in rows]
        counted = ", ".join(f"{verdicts.count(v):,} {v}" for v in VERDICTS if v in verdicts)
        counts = any(engine in row.gating for row in rows)
        lines.append(f"{engine}: {counted}{'' if counts else ' (does not count)'}")
    return lines
