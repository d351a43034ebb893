"""A sign of life on a terminal, while an audit waits for the network."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

PATIENCE: Final = 1.0
"""Seconds that pass before anything is shown."""

TERMINAL: Final = threading.Lock()
"""Held while something moves on stderr; two things at once would overwrite each other."""


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """Show `text` on stderr once the body takes long, and wipe it at the end.

    Where stderr is no terminal, or something else moves on it, nothing is shown.
    """
    if sys.stderr is None or not sys.stderr.isatty() or not TERMINAL.acquire(blocking=False):
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
        TERMINAL.release()


def _show(text: str, done: threading.Event) -> None:
    if done.wait(PATIENCE):
        return
    # Only here, because it takes a moment to import.
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(text)):
        done.wait()
