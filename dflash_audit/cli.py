"""The command line: options in, a report out; no logic of its own."""

import gc
import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dflash_audit import __version__
from dflash_audit import cli_options as options
from dflash_audit.cards import CARDS, DEFAULT_CARD
from dflash_audit.engines import DEFAULT, ENGINES
from dflash_audit.rules import RULES, page, title

if TYPE_CHECKING:
    from dflash_audit.formats.screen import Screen

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


@app.command("audit")
def audit_command(
    source: options.Source,
    revision: options.Revision = None,
    engine: options.EnginesThatGate = None,
    quantization: options.Quantization = None,
    tp: options.Ranks = 1,
    gpu: options.Card = DEFAULT_CARD,
    attention_backend: options.AttentionBackend = None,
    fail_on: options.FailsOn = None,
    select: options.Select = None,
    ignore: options.Ignored = None,
    baseline: options.Baseline = None,
    write_baseline: options.WriteBaseline = None,
    strict: options.Strict = None,
    formats: options.Formats = None,
    file: options.File = None,
    as_json: options.Json = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print the load plan too.")] = False,
    warmup: options.WarmUp = False,
    device: options.Device = None,
    dtype: options.Dtype = None,
    backend: options.Runs = None,
    blocks: options.Blocks = None,
    context: options.Context = None,
    seed: options.Seed = None,
    timeout: options.Timeout = None,
    provoke: options.Provoke = False,
    against: options.Against = None,
) -> None:
    """Audit a checkpoint: exit 0 when every deciding engine serves it, 1 when not, 3 when it cannot tell."""
    from dflash_audit.audit import Request, audit
    from dflash_audit.deliver import deliver
    from dflash_audit.engine_run import Conditions
    from dflash_audit.gate.gated import gated

    outputs = options.outputs(formats or [], file, as_json)
    options.own_file(write_baseline, outputs)
    controls = options.controls(source, fail_on, select, ignore, baseline, strict)
    named = engine or [DEFAULT]
    gating = frozenset(ENGINES if "all" in named else named)
    options.one_rank(gating, tp, warmup)
    warm = options.warm_up_options(
        warmup,
        provoke,
        device=device,
        dtype=dtype,
        backend=backend,
        blocks=blocks,
        context=context,
        seed=seed,
        timeout=timeout,
        against=against,
    )
    conditions = Conditions(tp, CARDS[gpu], quantization, attention_backend)
    report = audit(Request(source, gating, conditions, controls.fail_on, revision, warm))
    report = gated(report, controls, write_baseline)
    report, troubles = deliver(report, outputs, _screen(verbose), _write)
    _complain(troubles)
    raise typer.Exit(report.exit_code)


@app.command("tree")
def tree_command(
    source: options.Source,
    revision: options.Revision = None,
    engine: options.Engine = DEFAULT,
    quantization: options.Quantization = None,
    tp: options.Ranks = 1,
    gpu: options.Card = DEFAULT_CARD,
    attention_backend: options.AttentionBackend = None,
) -> None:
    """Print the module tree that an engine builds, and what happens to each parameter."""
    from dflash_audit.audit import Request, audit
    from dflash_audit.engine_run import Conditions
    from dflash_audit.formats import tree_text

    options.one_rank([engine], tp)
    gating = frozenset((*ENGINES, engine)) - {"all"}
    conditions = Conditions(tp, CARDS[gpu], quantization, attention_backend)
    report = audit(Request(source, gating, conditions, revision=revision))
    _complain([report.error.message] if report.error else [])
    for run in report.runs:
        if engine in (run.engine, "all"):
            _write(tree_text.render(run, _screen()))
    raise typer.Exit(report.exit_code if report.error else 0)


@app.command("fix")
def fix_command(
    source: options.Source,
    revision: options.Revision = None,
    engine: options.EnginesThatGate = None,
    quantization: options.Quantization = None,
    tp: options.Ranks = 1,
    gpu: options.Card = DEFAULT_CARD,
    attention_backend: options.AttentionBackend = None,
    write: options.Write = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as one JSON object.")] = False,
) -> None:
    """Propose the smallest change of config.json with which the deciding engines load the checkpoint."""
    from dflash_audit.audit import Request
    from dflash_audit.engine_run import Conditions
    from dflash_audit.fixing.fix import fix
    from dflash_audit.fixing.fix import write as write_fix
    from dflash_audit.formats import fix_json, fix_text

    options.writable(source, write)
    gating = frozenset(ENGINES if "all" in (engine or ()) else engine or [DEFAULT])
    options.one_rank(gating, tp)
    conditions = Conditions(tp, CARDS[gpu], quantization, attention_backend)
    fixed = fix(Request(source, gating, conditions, revision=revision))
    if write and fixed.outcome == "mended":
        fixed = write_fix(fixed)
    if as_json:
        _write(fix_json.render(fixed))
    elif fixed.before.checkpoint is not None:
        _write(fix_text.render(fixed, _screen()))
    error = fixed.error or fixed.before.error
    if error is not None:
        print(f"dflash-audit: {error.message}", file=sys.stderr)
    raise typer.Exit(fixed.exit_code)


@app.command("selfcheck")
def selfcheck_command(
    cases: options.Folders = None, engine: options.Profile = None, gpu: options.Card = DEFAULT_CARD
) -> None:
    """Compare a profile with the installed SGLang itself: exit 0 where they agree on every draft."""
    from dflash_audit.selfcheck.command import selfcheck

    version = options.installed_version()
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
def explain_command(rule: options.Rule) -> None:
    """Explain a rule: what it finds, why it matters, an example, how to fix it."""
    _write(page(rule))


@app.command("schema")
def schema_command() -> None:
    """Print the JSON Schema of the report that --json prints."""
    from dflash_audit.formats.json_report import schema

    _write(schema())


def _screen(verbose: bool = False) -> "Screen":
    from dflash_audit.formats.screen import Screen

    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return Screen(shutil.get_terminal_size().columns, sys.stdout.isatty() and not plain, verbose)


def _write(text: str) -> None:
    """Print; a reader that has seen enough, such as head, does not change the exit code."""
    try:
        print(text, flush=True)
    except OSError as error:
        # Else Python's own flush at exit would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            _complain([f"stdout: {error.strerror}"])
            raise typer.Exit(3) from None


def _complain(troubles: Iterable[str]) -> None:
    for trouble in troubles:
        print(f"dflash-audit: {trouble}", file=sys.stderr)


def _show_version(asked: bool) -> None:
    if asked:
        _write(f"dflash-audit {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    del version


COMMANDS = frozenset(("audit", "tree", "fix", "selfcheck", "rules", "explain", "schema"))
OWN_OPTIONS = frozenset(("-h", "--help", "--version"))


def main() -> None:
    """Run the command line; a first word that is no command is the source of an audit."""
    if sys.stdout is None:  # closed by whoever started this: the exit code still tells
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    if hasattr(sys.stdout, "reconfigure"):
        # A name out of a checkpoint may hold what the terminal's encoding does not.
        sys.stdout.reconfigure(errors="backslashreplace")
    # A run is over in a moment, and what it reads is no cycle: the collector would only cost time.
    gc.disable()
    words = sys.argv[1:]
    if words and words[0] not in COMMANDS | OWN_OPTIONS:
        words = ["audit", *words]
    app(args=words)
