"""What a command prints, and where: reports to stdout, complaints to stderr."""

import os
import shutil
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NoReturn, TextIO

import typer

from dflash_audit.sink import sink

if TYPE_CHECKING:
    from dflash_audit.formats.screen import Screen


AT_ONCE: Final = 2**20
"""So many characters are encoded at once: a report of very many tensors need not be there twice."""


def screen(verbose: bool = False, stream: TextIO | None = None) -> "Screen":
    """What text is laid out for: the terminal's width, and colours where the stream, or stdout, has them."""
    from dflash_audit.formats.screen import Screen

    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    stream = stream or sys.stdout
    return Screen(shutil.get_terminal_size().columns, stream.isatty() and not plain, verbose)


def write_out(*pieces: str) -> None:
    """Print pieces and a newline; a reader that has seen enough, such as head, changes no exit code."""
    try:
        for piece in pieces:
            for at in range(0, len(piece), AT_ONCE):
                sys.stdout.write(piece[at : at + AT_ONCE])
        print(flush=True)
    except OSError as error:
        sink(sys.stdout)
        if not isinstance(error, BrokenPipeError):
            complain([f"stdout: {error.strerror}"])
            raise typer.Exit(3) from None


def complain(troubles: Iterable[str]) -> None:
    """A line each on stderr."""
    for trouble in troubles:
        write_err(f"dflash-audit: {trouble}")


def write_err(text: str) -> None:
    """Print on stderr, where there is one; that it takes nothing changes nothing."""
    try:
        if sys.stderr is not None:
            print(text, file=sys.stderr, flush=True)
    except OSError:
        sink(sys.stderr)


def leave(code: int) -> NoReturn:
    """End the process at once, without waiting for what other threads are at."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with suppress(OSError):
                stream.flush()
    os._exit(code)
