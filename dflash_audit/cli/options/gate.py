"""What fails an audit."""

import os
import sys
from collections.abc import Iterable
from typing import Annotated, Any

import typer

from dflash_audit import usage
from dflash_audit.cli.options.words import known, told
from dflash_audit.finding import FailOn, Severity
from dflash_audit.gate import words
from dflash_audit.gate.controls import Controls, Ignore
from dflash_audit.printable import printable

_fail_on = told(words.fail_on)
_selected = told(words.selected)
_ignore = told(words.ignore)
_ignores = told(words.ignores)
FailsOn = Annotated[
    FailOn | None,
    typer.Option(
        "--fail-on",
        parser=_fail_on,
        metavar="SEVERITY",
        help="What exits 1: error (the default), warning, note or never.",
    ),
]
Select = Annotated[
    list[str] | None,
    typer.Option("--select", metavar="RULE[,RULE]", help="Go by these rules alone. Repeatable."),
]
Ignored = Annotated[
    list[Ignore] | None,
    typer.Option(
        "--ignore",
        parser=_ignore,
        metavar="RULE[:GLOB]",
        help="Let pass what the rule finds, with GLOB about subjects that match it. Repeatable.",
    ),
]
Baseline = Annotated[
    str | None,
    typer.Option("--baseline", metavar="FILE", help="Let pass what this file of --write-baseline has."),
]
WriteBaseline = Annotated[
    str | None,
    typer.Option(
        "--write-baseline", metavar="FILE", help="Write what is found into this file, and let it pass."
    ),
]
Strict = Annotated[
    bool | None,
    typer.Option(
        "--strict/--no-strict", help="Exit 1 too where a rule did not look at an engine that decides."
    ),
]


def controls(
    source: str,
    fail_on: FailOn | None,
    select: Iterable[str] | None,
    ignore: Iterable[Ignore] | None,
    baseline: str | None,
    strict: bool | None,
    write_baseline: str | None = None,
) -> Controls:
    """The gate's, of the options and, where one was not given, of the settings; a usage error if wrong.

    A baseline that is about to be written is not read: all of it will be known.
    """
    try:
        table = _settings(source)
        file = table.get("baseline") if baseline is None else baseline
        if file is not None and write_baseline is not None:
            file = None if os.path.realpath(file) == os.path.realpath(write_baseline) else file
        return Controls(
            fail_on=table.get("fail-on", "error") if fail_on is None else fail_on,
            select=table.get("select") if select is None else _selected(select),
            ignore=table.get("ignore", ()) if ignore is None else tuple(ignore),
            known=None if file is None else _known_findings(file),
            strict=table.get("strict", False) if strict is None else strict,
        )
    except usage.WrongUsage as error:
        raise typer.BadParameter(str(error)) from None


def _known_findings(baseline: str) -> dict[str, Severity]:
    from dflash_audit.gate.baseline import read

    return read(baseline)


def _settings(source: str) -> dict[str, Any]:
    """The working directory's, each as its option has it; of what is audited they are not read."""
    from dflash_audit.gate import settings

    if (found := settings.find()) is None:
        return {}
    file, text = found
    if (why := settings.not_trusted(source)) is not None:
        if settings.meant(file, text):
            print(f"dflash-audit: {file} is not read: {why}", file=sys.stderr)
        return {}
    table = settings.parse(file, text)
    read = {"fail-on": _fail_on, "select": _selected, "ignore": _ignores}
    try:
        for key, value in table.items():
            known(printable(key), settings.KEYS, "key")
            table[key] = read[key](value) if key in read else value
    except typer.BadParameter as error:
        raise typer.BadParameter(f"{file}: {printable(error.message)}") from None
    return table
