"""The command line: options in, a report out; no logic of its own."""

import difflib
import gc
import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dflash_audit import __version__
from dflash_audit.cards import CARDS, DEFAULT_CARD
from dflash_audit.engines import DEFAULT, ENGINES, LIVE
from dflash_audit.finding import SEVERITIES, Severity
from dflash_audit.rules import RULES, page, title

if TYPE_CHECKING:
    from dflash_audit.formats.screen import Screen
    from dflash_audit.report import Report

# What a command needs it imports itself, and help is plain, so that --help and --version answer at once.
app = typer.Typer(
    name="dflash-audit",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Tell what a serving engine would do with a DFlash draft checkpoint, before anyone serves it."
    " `dflash-audit SOURCE` is short for `dflash-audit audit SOURCE`.",
)


def _known(name: str, names: Iterable[str], what: str) -> str:
    """A name as given; a usage error with the nearest one for a name that is none."""
    names = [*names]
    if name in names:
        return name
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.4)
    meant = f" Did you mean {near[0]}?" if near else ""
    raise typer.BadParameter(f"{name} is no {what}.{meant} Known: {', '.join(names)}.")


def _engine(name: str) -> str:
    known = _known(name, [*ENGINES, *LIVE, "all"], "engine")
    if known in LIVE:
        _need_installed(known)
    return known


def _profile(name: str) -> str:
    return _known(name, ENGINES, "profile")


def _need_installed(engine: str = "sglang@installed") -> str:
    """The version that is installed; a usage error without one."""
    from dflash_audit.engines.sglang_installed.installed import HOW_TO_INSTALL, installed_version

    version = installed_version()
    if version is None:
        raise typer.BadParameter(f"{engine} needs an SGLang, and there is none: {HOW_TO_INSTALL}.")
    return version


def _card(name: str) -> str:
    return _known(name.lower(), CARDS, "card")


def _rule(name: str) -> str:
    return _known(name.lower(), RULES, "rule")


def _severity(name: str) -> str:
    return _known(name.lower(), SEVERITIES, "severity")


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
Card = Annotated[
    str, typer.Option("--gpu", parser=_card, metavar="CARD", help=f"The card: {', '.join(CARDS)}.")
]
Backend = Annotated[
    str | None,
    typer.Option("--speculative-draft-attention-backend", metavar="NAME", help="The server's option."),
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


@app.command("audit")
def audit_command(
    source: Source,
    revision: Revision = None,
    engine: EnginesThatGate = None,
    quantization: Quantization = None,
    tp: Ranks = 1,
    gpu: Card = DEFAULT_CARD,
    backend: Backend = None,
    fail_on: Annotated[
        Severity,
        typer.Option(
            "--fail-on",
            parser=_severity,
            metavar="SEVERITY",
            help="What exits 1: error, warning or note.",
        ),
    ] = "error",
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as one JSON object.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print the load plan too.")] = False,
) -> None:
    """Audit a checkpoint: exit 0 when every deciding engine serves it, 1 when not, 3 when unreadable."""
    from dflash_audit.formats import render

    named = engine or [DEFAULT]
    gating = frozenset(ENGINES if "all" in named else named)
    report = _audit(source, revision, gating, (tp, CARDS[gpu], quantization, backend), fail_on)
    if as_json or report.error is None:
        _write(render("json" if as_json else "text", report, _screen(verbose)))
    _complain(report)
    raise typer.Exit(report.exit_code)


@app.command("tree")
def tree_command(
    source: Source,
    revision: Revision = None,
    engine: Annotated[
        str, typer.Option("--engine", parser=_engine, metavar="NAME", help="An engine, or all.")
    ] = DEFAULT,
    quantization: Quantization = None,
    tp: Ranks = 1,
    gpu: Card = DEFAULT_CARD,
    backend: Backend = None,
) -> None:
    """Print the module tree that an engine builds, and what happens to each parameter."""
    from dflash_audit.formats import tree_text

    gating = frozenset((*ENGINES, engine)) - {"all"}
    report = _audit(source, revision, gating, (tp, CARDS[gpu], quantization, backend), "error")
    _complain(report)
    for run in report.runs:
        if engine in (run.engine, "all"):
            _write(tree_text.render(run, _screen()))
    raise typer.Exit(report.exit_code if report.error else 0)


@app.command("selfcheck")
def selfcheck_command(
    cases: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FOLDER...",
            exists=True,
            file_okay=False,
            help="Checkpoints, recorded cases, or folders of them. Default: the fixtures of this checkout.",
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine",
            parser=_profile,
            metavar="NAME",
            help="The profile to hold the installed SGLang against. Default: that of its version.",
        ),
    ] = None,
    gpu: Card = DEFAULT_CARD,
) -> None:
    """Compare a profile with the installed SGLang itself: exit 0 where they agree on every draft."""
    from dflash_audit.selfcheck.command import selfcheck

    version = _need_installed()
    folders = cases or [path for path in (Path(__file__).parents[1] / "fixtures",) if path.is_dir()]
    if not folders:
        raise typer.BadParameter("name checkpoints to compare on: only a checkout brings its own")
    raise typer.Exit(selfcheck(folders, engine, version, CARDS[gpu], _write))


@app.command("rules")
def rules_command() -> None:
    """List the rules, a line each."""
    width = max(map(len, RULES))
    for rule in RULES:
        _write(f"{rule:{width}}  {title(rule)}")


@app.command("explain")
def explain_command(
    rule: Annotated[str, typer.Argument(parser=_rule, metavar="RULE", help="A rule's name.")],
) -> None:
    """Explain a rule: what it finds, why it matters, an example, how to fix it."""
    _write(page(rule))


def _screen(verbose: bool = False) -> "Screen":
    from dflash_audit.formats.screen import Screen

    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return Screen(shutil.get_terminal_size().columns, sys.stdout.isatty() and not plain, verbose)


def _audit(
    source: str,
    revision: str | None,
    gating: frozenset[str],
    server: tuple[int, int, str | None, str | None],
    fail_on: Severity,
) -> "Report":
    """Audit, with a sign of life while a repo takes long."""
    from dflash_audit.audit import Request, audit
    from dflash_audit.engine_run import Conditions
    from dflash_audit.sources.progress import waiting
    from dflash_audit.sources.source import find_repo

    if server[0] > 1 and not gating.isdisjoint(LIVE):
        raise typer.BadParameter(f"{', '.join(gating.intersection(LIVE))} builds one rank alone: no --tp")
    request = Request(source, gating, Conditions(*server), fail_on, revision)
    if find_repo(source) is None:
        return audit(request)
    with waiting(f"Reading {source} ..."):
        return audit(request)


def _write(text: str) -> None:
    """Print; a reader that has seen enough, such as head, does not change the exit code."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # Else Python's own flush at exit would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(report: "Report") -> None:
    if report.error is not None:
        print(f"dflash-audit: {report.error.message}", file=sys.stderr)


def _show_version(asked: bool) -> None:
    if asked:
        print(f"dflash-audit {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    del version


COMMANDS = frozenset(("audit", "tree", "selfcheck", "rules", "explain"))
OWN_OPTIONS = frozenset(("-h", "--help", "--version"))


def main() -> None:
    """Run the command line; a first word that is no command is the source of an audit."""
    if sys.stdout is not None and hasattr(sys.stdout, "reconfigure"):
        # A name out of a checkpoint may hold what the terminal's encoding does not.
        sys.stdout.reconfigure(errors="backslashreplace")
    # A run is over in a moment, and what it reads is no cycle: the collector would only cost time.
    gc.disable()
    words = sys.argv[1:]
    if words and words[0] not in COMMANDS | OWN_OPTIONS:
        words = ["audit", *words]
    app(args=words)
