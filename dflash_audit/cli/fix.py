"""The command `fix`: the smallest change of config.json that makes a draft load."""

import sys
from typing import Annotated

import typer

from dflash_audit.cards import DEFAULT_CARD
from dflash_audit.cli import options
from dflash_audit.cli.terminal import screen, write_out


def command(
    source: options.Source,
    revision: options.Revision = None,
    engine: options.EnginesThatGate = None,
    quantization: options.Quantization = None,
    tp: options.Ranks = 1,
    gpu: options.Card = DEFAULT_CARD,
    attention_backend: options.AttentionBackend = None,
    target: options.Target = None,
    write: options.Write = False,
    accept_loss: options.AcceptLoss = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as one JSON object.")] = False,
) -> None:
    """Propose the smallest change of config.json with which the deciding engines load the checkpoint."""
    from dflash_audit.auditing import Request
    from dflash_audit.fixing.fix import fix
    from dflash_audit.fixing.fix import write as write_fix
    from dflash_audit.formats.fix import json as fix_json
    from dflash_audit.formats.fix import text as fix_text

    options.writable(source, write)
    gating, conditions = options.asked(engine, [tp], gpu, quantization, attention_backend)
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
