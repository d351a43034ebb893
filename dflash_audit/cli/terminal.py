"""What a command prints, and where: reports to stdout, complaints to stderr."""

import os
import shutil
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from dflash_audit.formats.screen import Screen


def screen(verbose: bool = False) -> "Screen":
    """What text is laid out for: the terminal's width, and colours where it has them."""
    from dflash_audit.formats.screen import Screen

    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return Screen(shutil.get_terminal_size().columns, sys.stdout.isatty() and not plain, verbose)


def write_out(text: str) -> None:
    """Print; a reader that has seen enough, such as head, does not change the exit code."""
    try:
        print(text, flush=True)
    except OSError as error:
        # Else Python's own flush at exit would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            complain([f"stdout: {error.strerror}"])
            raise typer.Exit(3) from None


def complain(troubles: Iterable[str]) -> None:
    """A line each on stderr."""
    for trouble in troubles:
        print(f"dflash-audit: {trouble}", file=sys.stderr)
