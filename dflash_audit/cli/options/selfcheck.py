"""Which profile is held against the installed engine, and on what."""

from pathlib import Path
from typing import Annotated

import typer

from dflash_audit.cli.options.words import known
from dflash_audit.engines import ENGINES


def _profile(name: str) -> str:
    return known(name, ENGINES, "profile")


Folders = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="FOLDER...",
        exists=True,
        file_okay=False,
        help="Checkpoints, recorded cases, or folders of them. Default: the fixtures of this checkout.",
    ),
]
Profile = Annotated[
    str | None,
    typer.Option(
        "--engine",
        parser=_profile,
        metavar="NAME",
        help="The profile to hold the installed SGLang or vLLM against. Default: that of its version.",
    ),
]
