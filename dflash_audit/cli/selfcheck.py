"""The command `selfcheck`: a profile beside the engine that is installed."""

from pathlib import Path

import typer

from dflash_audit.cards import CARDS, DEFAULT_CARD
from dflash_audit.cli.options import audited
from dflash_audit.cli.options import selfcheck as selfcheck_options
from dflash_audit.cli.terminal import write_out


def command(
    cases: selfcheck_options.Folders = None,
    engine: selfcheck_options.Profile = None,
    gpu: audited.Card = DEFAULT_CARD,
) -> None:
    """Compare a profile with the installed SGLang or vLLM itself: exit 0 where they agree on every draft."""
    from dflash_audit.selfcheck.command import selfcheck

    packages = audited.installed_packages(engine)
    folders = cases or [path for path in (Path(__file__).parents[2] / "fixtures",) if path.is_dir()]
    if not folders:
        raise typer.BadParameter("name checkpoints to compare on: only a checkout brings its own")
    codes = [selfcheck(folders, package, engine, CARDS[gpu], write_out) for package in packages]
    raise typer.Exit(max(codes))
