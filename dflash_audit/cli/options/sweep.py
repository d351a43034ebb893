"""What is swept, and where its lines go."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from dflash_audit.cli.terminal import complain
from dflash_audit.engines import LIVE
from dflash_audit.errors import Unreadable
from dflash_audit.printable import printable

if TYPE_CHECKING:
    from dflash_audit.sweeping.lines import Lines
    from dflash_audit.sweeping.row import Key, Row

Style = Literal["jsonl", "table"]

NOT_READ: Final = 3
"""The exit code where nothing can be read or written."""

DEFAULT_JOBS: Final = 5

Sources = Annotated[
    list[str] | None,
    typer.Argument(metavar="SOURCE", help="Folders and repos of the Hub, as `audit` takes them."),
]
From = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="FILE",
        help="A file of sources, one a line, or of an earlier sweep; - is stdin, # begins a comment.",
    ),
]
Author = Annotated[
    str | None,
    typer.Option("--author", metavar="NAME", help="The drafts of a user or organization on the Hub."),
]
Search = Annotated[
    str | None,
    typer.Option("--search", metavar="TEXT", help="The drafts on the Hub with this in their names."),
]
Jobs = Annotated[
    int,
    typer.Option("--jobs", min=1, max=64, help="Most requests to the Hub at once."),
]
Output = Annotated[
    str | None,
    typer.Option(
        "-o", "--output", metavar="FILE", help="Write the lines of JSON into a file, which grows by them."
    ),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume", help="Go on with the file of -o: only what it lacks, or the network kept, is audited."
    ),
]
Format = Annotated[
    Style | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="What stdout gets: jsonl, a report a line (with -o the file gets them), or table."
        " Default: table on a terminal without -o, else jsonl.",
    ),
]


def profiles_alone(names: Iterable[str]) -> None:
    """A usage error for an engine that runs itself."""
    live = [name for name in names if name in LIVE]
    if live:
        raise typer.BadParameter(
            f"{live[0]} takes a process of its own for each draft: audit them one by one"
        )


def on_stdout(style: Style | None, output: str | None) -> Style:
    """What stdout gets."""
    terminal = output is None and sys.stdout.isatty()
    return style or ("table" if terminal else "jsonl")


def all_sources(named: Sequence[str], file: str | None, author: str | None, search: str | None) -> list[str]:
    """What is to be audited; a usage error where nothing names a source, exit 3 where a listing has none."""
    from dflash_audit.gate.unusable import Unusable
    from dflash_audit.sweeping.names import read_names

    try:
        sources = [*named, *(read_names(file) if file is not None else [])]
    except Unusable as error:
        raise typer.BadParameter(str(error)) from None
    for option, word in (("--author", author), ("--search", search)):
        if word is not None and not word.strip():  # such as of a variable that is not set
            raise typer.BadParameter(f"{option} is empty, which would be the whole Hub")
    asked = author is not None or search is not None
    if asked:
        sources += _listed(author, search)
    if not sources and asked:
        complain(["nothing to audit"])
        raise typer.Exit(NOT_READ)
    if not sources:
        raise typer.BadParameter("no source: name some, or give --from, --author or --search")
    return sources


def _listed(author: str | None, search: str | None) -> tuple[str, ...]:
    from dflash_audit.sources.hub_listing import list_repos
    from dflash_audit.sweeping.listing import select

    try:
        selection = select(list_repos(author, search))
    except Unreadable as error:
        complain([error.message])
        raise typer.Exit(NOT_READ) from None
    left_out = "".join(f"; left out: {number} ({why})" for why, number in selection.left_out.items())
    complain([f"{selection.listed} repos listed, {len(selection.sources)} drafts in them{left_out}"])
    return selection.sources


def earlier(
    output: str | None, resume: bool, gating: frozenset[str], asked: Mapping[str, object]
) -> Mapping["Key", "Row"]:
    """What the file has, once it holds that alone; a usage error for another program's file.

    What was audited by other engines, or by other conditions than those `asked`, is no part of this sweep.
    """
    from dflash_audit.atomic_write import unwritable
    from dflash_audit.gate.unusable import Unusable
    from dflash_audit.sweeping.claim import claimed
    from dflash_audit.sweeping.earlier import drop_the_rest, has_results, read_earlier

    if output is None:
        if resume:
            raise typer.BadParameter("--resume goes on with a file: name it with -o")
        return {}
    if not has_results(output):
        return {}
    if not resume:
        raise typer.BadParameter(f"{output} is there already: --resume goes on with it")
    try:
        with claimed(output):
            found = read_earlier(output)
            for row in found.rows.values():
                if row.gating and row.gating != gating:
                    written = ", ".join(sorted(row.gating))
                    raise typer.BadParameter(f"{output} was written with --engine {written}")
                for name, value in asked.items():
                    if row.gating and row.conditions[name] != value:
                        written = printable(json.dumps(row.conditions[name]))
                        raise typer.BadParameter(f"{output} was written with another {name}: {written}")
            if found.dropped:
                drop_the_rest(output)
    except Unusable as error:
        raise typer.BadParameter(str(error)) from None
    except (Unreadable, OSError) as error:
        told = error if isinstance(error, Unreadable) else unwritable(output, error)
        complain([told.message])
        raise typer.Exit(NOT_READ) from None
    return found.rows


def lines(output: str | None, style: Style) -> "Lines":
    """Where the lines of JSON go; exit 3 where the file cannot be written."""
    from dflash_audit.sweeping.lines import Appended, Nowhere, Stdout

    if output is None:
        return Stdout() if style == "jsonl" else Nowhere()
    try:
        return Appended(output)
    except Unreadable as error:
        complain([error.message])
        raise typer.Exit(NOT_READ) from None


def least_trusted(sources: Iterable[str]) -> str:
    """The source whose settings the working directory's might be, or else any."""
    from dflash_audit.gate.settings import not_trusted

    first, *others = sources
    return next((source for source in (first, *others) if not_trusted(source)), first)
