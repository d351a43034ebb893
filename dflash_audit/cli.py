"""The command line: options in, a report out; no logic of its own."""

import difflib
import sys
from typing import Annotated

import typer

from dflash_audit import __version__
from dflash_audit.audit import Request, audit
from dflash_audit.engine_run import Conditions
from dflash_audit.engines import DEFAULT, ENGINES
from dflash_audit.formats import FORMATS, tree_text
from dflash_audit.report import PASSED, UNREADABLE, Report

app = typer.Typer(
    name="dflash-audit",
    add_completion=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Tell what a serving engine would do with a DFlash draft checkpoint, before anyone serves it."
    " `dflash-audit SOURCE` is short for `dflash-audit audit SOURCE`.",
)

Source = Annotated[
    str, typer.Argument(help="A checkpoint's folder, or one .safetensors file beside its config.json.")
]
Quantization = Annotated[
    str | None,
    typer.Option(
        "--quantization", help="The server's --quantization, which a draft without its own inherits."
    ),
]


def _engine(name: str) -> str:
    """An engine's name as given; a usage error with the nearest one for a name that is none."""
    if name in ENGINES or name == "all":
        return name
    near = difflib.get_close_matches(name, [*ENGINES, "all"], n=1, cutoff=0.0)
    raise typer.BadParameter(
        f"{name} is no engine. Did you mean {near[0]}? Known: {', '.join(ENGINES)}, all."
    )


@app.command("audit")
def audit_command(
    source: Source,
    engine: Annotated[
        list[str] | None,
        typer.Option(
            "--engine",
            parser=_engine,
            metavar="NAME",
            help=f"An engine that decides the exit code: {', '.join(ENGINES)} or all."
            f" Repeatable. Default: {DEFAULT}.",
        ),
    ] = None,
    quantization: Quantization = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as one JSON object.")] = False,
) -> None:
    """Audit a checkpoint: exit 0 when every deciding engine serves it, 1 when not, 3 when unreadable."""
    named = engine or [DEFAULT]
    gating = frozenset(ENGINES if "all" in named else named)
    report = audit(Request(source, gating, Conditions(quantization=quantization)))
    if as_json:
        print(FORMATS["json"](report))
    elif report.error is None:
        print(FORMATS["text"](report))
    _complain(report)
    raise typer.Exit(report.exit_code)


@app.command("tree")
def tree_command(
    source: Source,
    engine: Annotated[
        str, typer.Option("--engine", parser=_engine, metavar="NAME", help="An engine, or all.")
    ] = DEFAULT,
    quantization: Quantization = None,
) -> None:
    """Print the module tree that an engine builds, and what happens to each parameter."""
    report = audit(Request(source, conditions=Conditions(quantization=quantization)))
    _complain(report)
    for run in report.runs:
        if engine in (run.engine, "all"):
            print(tree_text.render(run))
    raise typer.Exit(UNREADABLE if report.error else PASSED)


def _complain(report: Report) -> None:
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


COMMANDS = frozenset(("audit", "tree"))
OWN_OPTIONS = frozenset(("-h", "--help", "--version"))


def main() -> None:
    """Run the command line; a first word that is no command is the source of an audit."""
    words = sys.argv[1:]
    if words and words[0] not in COMMANDS | OWN_OPTIONS:
        words = ["audit", *words]
    app(args=words)
