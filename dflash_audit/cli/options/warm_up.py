"""How a draft is warmed up."""

import sys
from typing import Annotated, Any, Final

import typer

from dflash_audit.cli.options.words import told
from dflash_audit.warmup import words as warmup_words
from dflash_audit.warmup.options import DTYPES, Options

DEFAULTS: Final = Options()
_device = told(warmup_words.device)
_dtype = told(warmup_words.dtype)
_backend = told(warmup_words.backend)
WarmUp = Annotated[
    bool,
    typer.Option(
        "--warmup",
        help="Run the draft of each deciding engine forward too, in a process of its own, with poison in what"
        " nothing fills. A repo is downloaded for it. The options below are for it alone.",
    ),
]
Device = Annotated[
    str | None,
    typer.Option(
        "--device", parser=_device, metavar="DEVICE", help="auto (a GPU if there is one), cpu, cuda, cuda:N."
    ),
]
Dtype = Annotated[
    str | None,
    typer.Option(
        "--dtype", parser=_dtype, metavar="DTYPE", help=f"{', '.join(DTYPES)}. Default: {DEFAULTS.dtype}."
    ),
]
Runs = Annotated[
    str | None,
    typer.Option(
        "--backend",
        parser=_backend,
        metavar="BACKEND",
        help="reference (plain PyTorch), sglang (the installed one), or auto: sglang on a GPU that has it.",
    ),
]
Blocks = Annotated[
    int | None,
    typer.Option("--blocks", min=1, help=f"So many blocks are drafted. Default: {DEFAULTS.blocks}."),
]
Context = Annotated[
    int | None,
    typer.Option("--context", min=1, help=f"Tokens before the first block. Default: {DEFAULTS.context}."),
]
Seed = Annotated[int | None, typer.Option("--seed", min=0, help="Of the inputs; no verdict depends on it.")]
Timeout = Annotated[
    int | None,
    typer.Option("--timeout", min=1, help=f"Seconds for one engine. Default: {DEFAULTS.timeout}."),
]
Provoke = Annotated[
    bool,
    typer.Option("--provoke", help="Run once more with an id out of range, to see what a server would meet."),
]
Against = Annotated[
    str | None,
    typer.Option(
        "--against",
        metavar="SOURCE",
        help="A path or repo: the draft that this one was made from, to hold weights, hidden states and"
        " candidates against. It is downloaded too.",
    ),
]


def warm_up_options(asked: bool, provoke: bool, **given: Any) -> Options | None:
    """How to warm up, None where nobody asked; `given` are the options by name, None where left out."""
    chosen = {name: value for name, value in given.items() if value is not None}
    if not asked:
        for name in (*chosen, *(["provoke"] if provoke else [])):
            raise typer.BadParameter(f"--{name} is for a warm-up: add --warmup.")
        return None
    # Only here, because only a warm-up needs it.
    from dflash_audit.warmup.extra import missing

    if (lacks := missing()) is not None:
        print(f"dflash-audit: {lacks}", file=sys.stderr)
        raise typer.Exit(2)
    return Options(provoke=provoke, **chosen)
