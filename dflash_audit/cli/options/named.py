"""What is to be printed, by its name."""

from typing import Annotated

import typer

from dflash_audit.cli.options.words import known, told
from dflash_audit.formats.schemas import SCHEMAS
from dflash_audit.gate import words

_rule = told(words.rule)


def _schema(name: str) -> str:
    return known(name.lower(), SCHEMAS, "schema")


Rule = Annotated[str, typer.Argument(parser=_rule, metavar="RULE", help="A rule's name.")]
SchemaName = Annotated[
    str, typer.Argument(parser=_schema, metavar="NAME", help=f"Of what: {', '.join(SCHEMAS)}.")
]
