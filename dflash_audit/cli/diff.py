"""The command `diff`: two checkpoints, and what an engine does differently with them."""

from typing import Annotated

import typer

from dflash_audit.cards import DEFAULT_CARD
from dflash_audit.cli import options
from dflash_audit.cli.terminal import complain, screen, write_out


def command(
    a: Annotated[str, typer.Argument(metavar="A", help="A checkpoint, as `audit` takes it.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The one to compare it with.")],
    engine: options.EnginesCompared = None,
    quantization: options.Quantization = None,
    tp: options.Ranks = 1,
    gpu: options.Card = DEFAULT_CARD,
    attention_backend: options.AttentionBackend = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as one JSON object.")] = False,
) -> None:
    """Compare two checkpoints: exit 0 where the engines do the same with both, 1 where not."""
    from dflash_audit.auditing import Request, audit
    from dflash_audit.difference import difference
    from dflash_audit.formats.diff import json as diff_json
    from dflash_audit.formats.diff import text as diff_text

    engines, conditions = options.asked(engine or ["all"], [tp], gpu, quantization, attention_backend)
    reports = [audit(Request(source, engines, conditions)) for source in (a, b)]
    found = difference(reports[0], reports[1], engines)
    if as_json:
        write_out(diff_json.render(found))
    elif found.error is None:
        write_out(diff_text.render(found, screen()))
    complain(dict.fromkeys(report.error.message for report in reports if report.error))
    raise typer.Exit(found.exit_code)
