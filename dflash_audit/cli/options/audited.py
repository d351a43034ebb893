"""What is audited, by which engines, and on which server."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from dflash_audit import usage
from dflash_audit.cards import CARDS
from dflash_audit.cli.options.words import given, known, told
from dflash_audit.engines import DEFAULT, ENGINES, LIVE
from dflash_audit.server_words import DRAFT_ATTENTION_BACKENDS

if TYPE_CHECKING:
    from dflash_audit.engine_run import Conditions


installed_version = told(usage.installed_version)
installed_packages = told(usage.installed_packages)
one_rank = told(usage.one_rank)
known_quantization = told(usage.quantization)
known_backend = told(usage.attention_backend)


def _engine(name: str) -> str:
    engine = known(name, [*ENGINES, *LIVE, "all"], "engine")
    if engine in LIVE:
        installed_version(engine)
    return engine


def asked(
    engines: Iterable[str] | None,
    sizes: Sequence[int],
    gpu: str,
    quantization: str | None,
    attention_backend: str | None,
    warmup: bool = False,
) -> tuple[frozenset[str], "Conditions"]:
    """The engines that decide, and the server that they run on, with the first of its `sizes` (--tp).

    A usage error where one of these engines, or a warm-up, cannot do with a size.
    """
    # Only here: --help does without.
    from dflash_audit.engine_run import Conditions

    gating = usage.deciding(engines or [DEFAULT])
    for tp in sizes:
        one_rank(gating, tp, warmup)
    return gating, Conditions(sizes[0], CARDS[gpu], quantization, attention_backend)


@dataclass(frozen=True, slots=True)
class RankSizes:
    """What --tp asks for: one size, or several."""

    sizes: tuple[int, ...] = (1,)


def _sizes(text: str) -> RankSizes:
    """N, or N,N: each a size once, above zero."""
    words = [word.strip() for word in text.split(",")]
    for word in words:
        if not re.fullmatch("[1-9][0-9]{0,4}", word, flags=re.ASCII):
            raise typer.BadParameter(f"{word or 'nothing'} is no number of ranks.")
        if words.count(word) > 1:
            raise typer.BadParameter(f"{word} is named twice.")
    return RankSizes(tuple(map(int, words)))


def _size(given: str | int) -> int:
    """N: of a command that looks at one size."""
    sizes = _sizes(str(given)).sizes
    if len(sizes) > 1:
        raise typer.BadParameter(f"this command takes one, and not {len(sizes)}: run it once for each.")
    return sizes[0]


def _card(name: str) -> str:
    return known(name.lower(), CARDS, "card")


Source = Annotated[
    str,
    typer.Argument(
        help="A checkpoint's folder, one .safetensors file beside its config.json, or a repo of the Hub:"
        " org/name, org/name@revision, org/name:folder/."
    ),
]
Revision = Annotated[
    str | None,
    typer.Option(
        "--revision",
        parser=given,
        metavar="TEXT",
        help="A branch, tag, commit or PR ref (refs/pr/1) of the repo.",
    ),
]
Quantization = Annotated[
    str | None,
    typer.Option(
        "--quantization",
        parser=known_quantization,
        metavar="NAME",
        help="An SGLang server's --quantization, inherited by a draft without its own; vLLM's lends it none.",
    ),
]
Ranks = Annotated[
    int, typer.Option("--tp", parser=_size, metavar="N", help="The server's tensor parallel ranks.")
]
Sizes = Annotated[
    RankSizes | None,
    typer.Option(
        "--tp",
        parser=_sizes,
        metavar="N[,N]",
        help="The server's tensor parallel ranks; several sizes, as 1,2,4,8, are each audited. Default: 1.",
    ),
]
Card = Annotated[
    str, typer.Option("--gpu", parser=_card, metavar="CARD", help=f"The card: {', '.join(CARDS)}.")
]
AttentionBackend = Annotated[
    str | None,
    typer.Option(
        "--speculative-draft-attention-backend",
        parser=known_backend,
        metavar="NAME",
        help=f"An SGLang server's option: {', '.join(DRAFT_ATTENTION_BACKENDS)}.",
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="SOURCE",
        help="The model that the draft is made for, to hold it against: a folder or a repo, of which"
        " config.json and the headers of head and embedding are read.",
    ),
]
EnginesThatGate = Annotated[
    list[str] | None,
    typer.Option(
        "--engine",
        parser=_engine,
        metavar="NAME",
        help=f"An engine that decides the exit code: {', '.join(ENGINES)}, all (of these),"
        f" or one that is run itself and takes its time, {' or '.join(LIVE)}."
        f" Repeatable. Default: {DEFAULT}.",
    ),
]
EnginesCompared = Annotated[
    list[str] | None,
    typer.Option(
        "--engine",
        parser=_engine,
        metavar="NAME",
        help=f"An engine to compare on: {', '.join([*ENGINES, *LIVE])}; all (of the profiles) is the default."
        " Repeatable.",
    ),
]
Engine = Annotated[str, typer.Option("--engine", parser=_engine, metavar="NAME", help="An engine, or all.")]
