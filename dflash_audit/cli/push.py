"""The command `push`: a folder to the Hub, if its audit passes."""

from typing import Annotated

import typer

from dflash_audit.cards import DEFAULT_CARD
from dflash_audit.cli.options import audited, gate, hub, output
from dflash_audit.cli.terminal import complain, screen, write_out


def command(
    folder: hub.FolderToPush,
    repo: hub.RepoToPush,
    create_pr: Annotated[bool, typer.Option("--create-pr", help="Upload as a pull request.")] = False,
    revision: Annotated[
        str | None, typer.Option("--revision", help="A branch, made if need be, or refs/pr/1, to commit to.")
    ] = None,
    private: Annotated[bool, typer.Option("--private", help="Make a new repo a private one.")] = False,
    message: Annotated[
        str | None, typer.Option("--commit-message", metavar="TEXT", help="The first line of the commit.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Audit, and say what would be uploaded; write nothing.")
    ] = False,
    engine: audited.EnginesThatGate = None,
    quantization: audited.Quantization = None,
    tp: audited.Ranks = 1,
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
    gating, conditions = audited.asked(engine, [tp], gpu, quantization, attention_backend)
    destination = Destination(repo, revision, create_pr, private, message or MESSAGE)
    before, report = audit_folder(Request(folder, gating, conditions, controls.fail_on, target=target))
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
