"""The command `fix`: the smallest change of config.json that makes a draft load."""

import sys
from typing import Annotated

import typer

from dflash_audit.cards import DEFAULT_CARD
from dflash_audit.cli.options import audited, repair
from dflash_audit.cli.terminal import screen, write_out


def command(
    source: audited.Source,
    revision: audited.Revision = None,
    engine: audited.EnginesThatGate = None,
    quantization: audited.Quantization = None,
    tp: audited.Ranks = 1,
    gpu: audited.Card = DEFAULT_CARD,
    attention_backend: audited.AttentionBackend = None,
    target: audited.Target = None,
    write: repair.Write = False,
    accept_loss: repair.AcceptLoss = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as one JSON object.")] = False,
) -> None:
    """Propose the smallest change of config.json with which the deciding engines load the checkpoint."""
    from dflash_audit.auditing import Request
    from dflash_audit.fixing.fix import fix
    from dflash_audit.fixing.fix import write as write_fix
    from dflash_audit.formats.fix import json as fix_json
    from dflash_audit.formats.fix import text as fix_text

    repair.writable(source, write)
    gating, conditions = audited.asked(engine, [tp], gpu, quantization, attention_backend)
    request = Request(source, gating, conditions, revision=revision, target=target)
    fixed = fix(request, accept_loss)
    if write:
        fixed = write_fix(fixed)
    if as_json:
        write_out(fix_json.render(fixed))
    elif fixed.before.checkpoint is not None:
        write_out(fix_text.render(fixed, screen()))
    error = fixed.error or fixed.before.error
    if error is not None:
        print(f"dflash-audit: {error.message}", file=sys.stderr)
    raise typer.Exit(fixed.exit_code)
