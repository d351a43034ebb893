"""What a repair may do."""

from typing import Annotated

import typer


def writable(source: str, write: bool) -> None:
    """A usage error where a repo of the Hub is to be written to."""
    if not write:
        return
    from dflash_audit.sources.source import find_repo

    if find_repo(source) is not None:
        raise typer.BadParameter("a repo of the Hub is not written to: no --write")


Write = Annotated[
    bool,
    typer.Option("--write", help="Write the change, and keep the original beside it (config.json.orig)."),
]
AcceptLoss = Annotated[
    bool,
    typer.Option(
        "--accept-loss",
        help="Offer a change too with which an engine that does not decide, and that refuses the checkpoint"
        " now, would load it and lose a part of it.",
    ),
]
