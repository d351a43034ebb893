"""The command line: options in, a report out; no logic of its own. A file a command."""

import gc
import os
import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Annotated, Final

import typer

from dflash_audit import __version__
from dflash_audit.sources.progress import SHOWN

COMMANDS: Final[Mapping[str, str]] = {
    "audit": "audit",
    "tree": "tree",
    "fix": "fix",
    "push": "push",
    "pr": "pr",
    "sweep": "sweep",
    "diff": "diff",
    "selfcheck": "selfcheck",
    "rules": "rules",
    "explain": "explain",
    "schema": "schema",
}
"""Command -> its file in this package, which names the function `command`. Help lists them in this order."""

OWN_OPTIONS: Final = frozenset(("-h", "--help", "--version"))


def _show_version(asked: bool) -> None:
    if asked:
        from dflash_audit.cli.terminal import write_out

        write_out(f"dflash-audit {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    del version


def _program(commands: Iterable[str]) -> typer.Typer:
    """The program with these of its commands. What a command needs it imports itself, and help is plain."""
    app = typer.Typer(
        name="dflash-audit",
        add_completion=False,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        help="Tell what a serving engine would do with a DFlash draft checkpoint, before anyone serves it."
        " `dflash-audit SOURCE` is short for `dflash-audit audit SOURCE`.",
    )
    app.callback()(_root)
    for name in commands:
        app.command(name)(import_module(f"{__name__}.{COMMANDS[name]}").command)
    return app


def main() -> None:
    """Run the command line; a first word that is no command is the source of an audit."""
    if sys.stdout is None:  # closed by whoever started this: the exit code still tells
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    if hasattr(sys.stdout, "reconfigure"):
        # A name out of a checkpoint may hold what the terminal's encoding does not.
        sys.stdout.reconfigure(errors="backslashreplace")
    # A run is over in a moment, and what it reads is no cycle: the collector would only cost time.
    gc.disable()
    SHOWN.set(True)
    words = sys.argv[1:]
    if not words or words[0] in OWN_OPTIONS:
        commands: Iterable[str] = COMMANDS
    else:
        words = words if words[0] in COMMANDS else ["audit", *words]
        commands = words[:1]
    try:
        # One command is put together, not all: the others' options would only cost time.
        _program(commands)(args=words)
    except Exception as error:  # a fault of the program, of which exit code 1 would blame the checkpoint
        from dflash_audit.cli.crash import end

        end(error)
