"""A sign of life on a terminal, while an audit waits for the network."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

PATIENCE: Final = 1.0
"""Seconds that pass before anything is shown."""

SHOWN: Final = ContextVar("SHOWN", default=False)
"""Whether anything is shown at all: the command line says so for itself. A thread of a sweep, and a program
that calls the audit as a library, have a terminal of their own to fill."""


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """Show `text` on stderr once the body takes long, and wipe it at the end.

    Where stderr is no terminal, or nobody wants it `SHOWN`, nothing is.
    """
    if not (SHOWN.get() and sys.stderr is not None and sys.stderr.isatty()):
        yield
        return
    done = threading.Event()
    watcher = threading.Thread(target=_show, args=(text, done), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _show(text: str, done: threading.Event) -> None:
    if done.wait(PATIENCE):
        return
    # Only here, because it takes a moment to import.
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(text)):
        done.wait()
