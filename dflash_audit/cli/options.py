"""The options of the command line: their words, their help, and what counts as a wrong one."""

import functools
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, ParamSpec, TypeVar

import typer

from dflash_audit import usage
from dflash_audit.cards import CARDS
from dflash_audit.engines import DEFAULT, ENGINES, LIVE
from dflash_audit.finding import FailOn, Severity
from dflash_audit.formats import FORMATS
from dflash_audit.formats.output import Output
from dflash_audit.formats.schemas import SCHEMAS
from dflash_audit.gate import words
from dflash_audit.gate.controls import Controls, Ignore
from dflash_audit.printable import printable
from dflash_audit.warmup import words as warmup_words
from dflash_audit.warmup.options import DTYPES, Options

if TYPE_CHECKING:
    from dflash_audit.engine_run import Conditions

T = TypeVar("T")
P = ParamSpec("P")


def _told(read: Callable[P, T]) -> Callable[P, T]:
    """What reads a user's words, whose complaint becomes a usage error."""

    @functools.wraps(read)
    def reads(*given: P.args, **named: P.kwargs) -> T:
        try:
            return read(*given, **named)
        except usage.WrongUsage as error:
            raise typer.BadParameter(str(error)) from None

    return reads


_known = _told(usage.known)
installed_version = _told(usage.installed_version)
one_rank = _told(usage.one_rank)


def _engine(name: str) -> str:
    known = _known(name, [*ENGINES, *LIVE, "all"], "engine")
    if known in LIVE:
        installed_version(known)
    return known


def _profile(name: str) -> str:
    return _known(name, ENGINES, "profile")


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


def writable(source: str, write: bool) -> None:
    """A usage error where a repo of the Hub is to be written to."""
    if not write:
        return
    from dflash_audit.sources.source import find_repo

    if find_repo(source) is not None:
        raise typer.BadParameter("a repo of the Hub is not written to: no --write")


def a_folder(source: str) -> None:
    """A usage error where something else than a folder of this machine is to be uploaded."""
    from dflash_audit.sources.source import find_repo

    if os.path.isfile(source) or find_repo(source) is not None:
        raise typer.BadParameter(f"{printable(source)} is no folder here: push uploads one.")


def one_target(create_pr: bool, revision: str | None) -> None:
    """A usage error where a pull request is to be opened from another branch than the default one."""
    if create_pr and revision is not None:
        raise typer.BadParameter("--create-pr opens a pull request into the default branch: no --revision")


def _repo(text: str) -> str:
    """`org/name`, with or without `hf://`, and nothing else."""
    from dflash_audit.sources.repo import parse_repo

    repo = parse_repo(text)
    if repo is None or repo.revision is not None or repo.folder:
        raise typer.BadParameter(f"{printable(text)} is no repo of the Hub: org/name")
    return repo.id


def _repo_with_folder(text: str) -> str:
    """`org/name` or `org/name:folder/`, with or without `hf://`, and no revision."""
    from dflash_audit.sources.repo import parse_repo

    repo = parse_repo(text)
    if repo is None or repo.revision is not None:
        raise typer.BadParameter(f"{printable(text)} is no repo of the Hub: org/name, org/name:folder/")
    return repo.name


def _card(name: str) -> str:
    return _known(name.lower(), CARDS, "card")


_rule = _told(words.rule)
_fail_on = _told(words.fail_on)
_selected = _told(words.selected)
_ignore = _told(words.ignore)
_ignores = _told(words.ignores)


def _output(text: str) -> Output:
    """FORMAT, or FORMAT=FILE."""
    name, equals, file = text.partition("=")
    known = _known(name.lower(), FORMATS, "format")
    if equals and not file:
        raise typer.BadParameter(f"{text} names no file.")
    return Output(known, file or None)


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


def _review_format(name: str) -> str:
    return _known(name.lower(), ("text", "json", "markdown"), "format of a review")


def _schema(name: str) -> str:
    return _known(name.lower(), SCHEMAS, "schema")


_device = _told(warmup_words.device)
_dtype = _told(warmup_words.dtype)
_backend = _told(warmup_words.backend)


Source = Annotated[
    str,
    typer.Argument(
        help="A checkpoint's folder, one .safetensors file beside its config.json, or a repo of the Hub:"
        " org/name, org/name@revision, org/name:folder/."
    ),
]
Revision = Annotated[
    str | None, typer.Option("--revision", help="A branch, tag, commit or PR ref (refs/pr/1) of the repo.")
]
Quantization = Annotated[
    str | None,
    typer.Option("--quantization", help="The server's --quantization, inherited by a draft without its own."),
]
Ranks = Annotated[int, typer.Option("--tp", min=1, help="The server's tensor parallel ranks.")]
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
    typer.Option("--speculative-draft-attention-backend", metavar="NAME", help="The server's option."),
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
        f" or {', '.join(LIVE)}, which is run itself and takes its time."
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
FolderToPush = Annotated[str, typer.Argument(metavar="FOLDER", help="The folder of a checkpoint.")]
RepoToPush = Annotated[
    str, typer.Argument(parser=_repo, metavar="REPO", help="Where it goes: org/name. Made if need be.")
]
RepoOfPullRequest = Annotated[
    str,
    typer.Argument(
        parser=_repo_with_folder, metavar="REPO", help="A repo of the Hub: org/name, org/name:folder/."
    ),
]
PullRequestNumber = Annotated[int, typer.Argument(min=1, metavar="NUMBER", help="Its pull request.")]
Engine = Annotated[str, typer.Option("--engine", parser=_engine, metavar="NAME", help="An engine, or all.")]
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
        help="The profile to hold the installed SGLang against. Default: that of its version.",
    ),
]
Write = Annotated[
    bool,
    typer.Option("--write", help="Write the change, and keep the original beside it (config.json.orig)."),
]
ReviewFormat = Annotated[
    str,
    typer.Option(
        "--format",
        parser=_review_format,
        metavar="FORMAT",
        help="text, json, or markdown: what --comment would post.",
    ),
]
SchemaName = Annotated[
    str, typer.Argument(parser=_schema, metavar="NAME", help=f"Of what: {', '.join(SCHEMAS)}.")
]
AcceptLoss = Annotated[
    bool,
    typer.Option(
        "--accept-loss",
        help="Offer a change too with which an engine that does not decide, and that refuses the checkpoint"
        " now, would load it and lose a part of it.",
    ),
]
Rule = Annotated[str, typer.Argument(parser=_rule, metavar="RULE", help="A rule's name.")]


def controls(
    source: str,
    fail_on: FailOn | None,
    select: Iterable[str] | None,
    ignore: Iterable[Ignore] | None,
    baseline: str | None,
    strict: bool | None,
) -> Controls:
    """The gate's, of the options and, where one was not given, of the settings; a usage error if wrong."""
    try:
        table = _settings(source)
        file = table.get("baseline") if baseline is None else baseline
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
            _known(printable(key), settings.KEYS, "key")
            table[key] = read[key](value) if key in read else value
    except typer.BadParameter as error:
        raise typer.BadParameter(f"{file}: {printable(error.message)}") from None
    return table


DEFAULTS: Final = Options()

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

    if (told := missing()) is not None:
        print(f"dflash-audit: {told}", file=sys.stderr)
        raise typer.Exit(2)
    return Options(provoke=provoke, **chosen)
