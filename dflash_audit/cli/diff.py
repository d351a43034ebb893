"""The command `diff`: two checkpoints, and what an engine does differently with them."""

from typing import Annotated

import typer

from dflash_audit.cards import DEFAULT_CARD
from dflash_audit.cli.options import audited
from dflash_audit.cli.terminal import complain, screen, write_out


def command(
    a: Annotated[str, typer.Argument(metavar="A", help="A checkpoint, as `audit` takes it.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The one to compare it with.")],
    engine: audited.EnginesCompared = None,
    quantization: audited.Quantization = None,
    tp: audited.Ranks = 1,
    gpu: audited.Card = DEFAULT_CARD,
    attention_backend: audited.AttentionBackend = None,
    target: audited.Target = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as one JSON object.")] = False,
) -> None:
    """Compare two checkpoints: exit 0 where the engines do the same with both, 1 where not."""

    from dflash_audit.auditing import Request, audit, target_read
    from dflash_audit.difference import difference
    from dflash_audit.errors import Unreadable
    from dflash_audit.formats.diff import json as diff_json
    from dflash_audit.formats.diff import text as diff_text
    from dflash_audit.report import Report
    from dflash_audit.sources.source import origin

    engines, conditions = audited.asked(engine or ["all"], [tp], gpu, quantization, attention_backend)
    try:
        # Read once, for both.
        request = target_read(Request("", engines, conditions, target=target))
        reports = [audit(request._replace(source=source)) for source in (a, b)]
    except Unreadable as error:
        reports = [Report(origin(source, None), error=error) for source in (a, b)]
    found = difference(reports[0], reports[1], engines)
    if as_json:
        write_out(diff_json.render(found))
    elif found.error is None:
        write_out(diff_text.render(found, screen()))
    complain(dict.fromkeys(report.error.message for report in reports if report.error))
    raise typer.Exit(found.exit_code)
