"""How far a sweep is, on a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dflash_audit.report import FOUND, UNREADABLE
from dflash_audit.sources.traffic import TRAFFIC
from dflash_audit.sweeping.row import Row


@contextmanager
def progress(total: int, shown: bool) -> Iterator[Callable[[Row], None]]:
    """A bar on stderr, to be told of each row; nothing where it is not `shown` or stderr is no terminal."""
    if not shown or sys.stderr is None or not sys.stderr.isatty():
        yield lambda row: None
        return
    # Only here, because it takes a moment to import.
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Told(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(_told(codes, TRAFFIC.held()))

    codes: list[int] = []
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), Told())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)

        def advance(row: Row) -> None:
            codes.append(row.exit_code)
            bar.advance(task)

        yield advance


def _told(codes: list[int], held: float) -> str:
    parts = [
        f"{number} {what}"
        for code, what in ((FOUND, "found wanting"), (UNREADABLE, "not read"))
        if (number := codes.count(code))
    ]
    waits = [f"the Hub asks to wait {held:.0f} s"] if held >= 1 else []
    return ", ".join([*parts, *waits])
