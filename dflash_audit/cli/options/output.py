"""How a report is written, and to where."""

import os
from collections.abc import Iterable
from typing import Annotated

import typer

from dflash_audit.cli.options.words import known
from dflash_audit.formats import FORMATS
from dflash_audit.formats.output import Output


def _output(text: str) -> Output:
    """FORMAT, or FORMAT=FILE."""
    name, equals, file = text.partition("=")
    form = known(name.lower(), FORMATS, "format")
    if equals and not file:
        raise typer.BadParameter(f"{text} names no file.")
    return Output(form, file or None)


def outputs(formats: Iterable[Output], file: str | None, as_json: bool) -> list[Output]:
    """Where the report goes, stdout or `file` first; a usage error where two reports go to one place."""
    formats = [*formats, *([Output("json")] if as_json else [])]
    first = list(dict.fromkeys(output for output in formats if output.file is None)) or [Output("text")]
    if len(first) > 1:
        names = " and ".join(output.format for output in first)
        raise typer.BadParameter(f"{names} would both go to one place: name a file, --format FORMAT=FILE.")
    found = [Output(first[0].format, file), *(output for output in formats if output.file is not None)]
    places = [os.path.realpath(output.file) for output in found if output.file is not None]
    for output in found:
        if output.file is not None and places.count(os.path.realpath(output.file)) > 1:
            raise typer.BadParameter(f"{output.file} would get two reports: name a file for each.")
    return found


def own_file(baseline: str | None, outputs: Iterable[Output]) -> None:
    """A usage error where a baseline would be written over a report."""
    files = [os.path.realpath(output.file) for output in outputs if output.file is not None]
    if baseline is not None and os.path.realpath(baseline) in files:
        raise typer.BadParameter(f"{baseline} would get a report and the baseline: name a file for each.")


Formats = Annotated[
    list[Output] | None,
    typer.Option(
        "--format",
        parser=_output,
        metavar="FORMAT[=FILE]",
        help=f"How the report is written: {', '.join(FORMATS)}; with FILE, there and beside what is printed."
        " Repeatable. Default: text.",
    ),
]
File = Annotated[
    str | None,
    typer.Option("-o", "--output", metavar="FILE", help="Write what would be printed into a file."),
]
Json = Annotated[bool, typer.Option("--json", help="The same as --format json.")]
