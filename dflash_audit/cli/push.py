"""The command `push`: a folder to the Hub, if its audit passes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from dflash_audit.cards import DEFAULT_CARD
from dflash_audit.cli.options import audited, gate, hub, output
from dflash_audit.cli.terminal import complain, leave, screen, write_out


def command(
    folder: hub.FolderToPush,
    repo: hub.RepoToPush,
    create_pr: Annotated[bool, typer.Option("--create-pr", help="Upload as a pull request.")] = False,
    revision: hub.RevisionToPush = None,
    private: Annotated[bool, typer.Option("--private", help="Make a new repo a private one.")] = False,
    message: Annotated[
        str | None, typer.Option("--commit-message", metavar="TEXT", help="The first line of the commit.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Audit, and say what would be uploaded; write nothing.")
    ] = False,
    engine: audited.EnginesThatGate = None,
    quantization: audited.Quantization = None,
    tp: audited.Sizes = None,
    gpu: audited.Card = DEFAULT_CARD,
    attention_backend: audited.AttentionBackend = None,
    target: audited.Target = None,
    fail_on: gate.FailsOn = None,
    select: gate.Select = None,
    ignore: gate.Ignored = None,
    baseline: gate.Baseline = None,
    strict: gate.Strict = None,
    as_json: output.Json = False,
) -> None:
    """Audit a folder and, if that exits 0, upload it to a repo of the Hub; else upload nothing."""
    from dflash_audit.auditing import Request
    from dflash_audit.deliver import deliver
    from dflash_audit.errors import Unreadable
    from dflash_audit.formats.output import Output
    from dflash_audit.gate.gated import gated
    from dflash_audit.printable import printable
    from dflash_audit.publishing.destination import MESSAGE, Destination
    from dflash_audit.publishing.folder_audit import audit_folder, unjudged

    hub.one_target(create_pr, revision)
    hub.a_folder(folder)
    controls = gate.controls(folder, fail_on, select, ignore, baseline, strict)
    sizes = (tp or audited.RankSizes()).sizes
    gating, conditions = audited.asked(engine, sizes, gpu, quantization, attention_backend)
    destination = Destination(repo, revision, create_pr, private, message or MESSAGE)
    request = Request(folder, gating, conditions, controls.fail_on, target=target, ranks=sizes)
    with _interrupts_told():
        before, report = audit_folder(request)
        report = gated(report, controls)
        report, troubles = deliver(report, [Output("json" if as_json else "text")], screen(), write_out)
        complain(troubles)
        if report.exit_code or before is None or report.checkpoint is None:
            complain(["nothing was uploaded"])
            raise typer.Exit(report.exit_code)
        if (told := unjudged(report)) is not None:
            complain([printable(told), "nothing was uploaded"])
            raise typer.Exit(3)
        # Only here, because it takes a moment to import.
        from dflash_audit.publishing.push import push

        try:
            push(before, report.checkpoint, destination, dry_run, lambda line: complain([printable(line)]))
        except Unreadable as error:
            complain([error.message])
            raise typer.Exit(3) from None


@contextmanager
def _interrupts_told() -> Iterator[None]:
    """After Ctrl-C a line says whether there may be a commit, and nobody waits for what is under way."""
    from dflash_audit.printable import printable
    from dflash_audit.report import INTERRUPTED

    try:
        yield
    except KeyboardInterrupt as stopped:
        complain([f"interrupted: {printable(str(stopped)) or 'nothing was committed'}"])
        leave(INTERRUPTED)
