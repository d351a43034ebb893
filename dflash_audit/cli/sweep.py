"""The command `sweep`: many checkpoints, a line of JSON each."""

import gc
import sys
from typing import Final

import typer

from dflash_audit.cards import DEFAULT_CARD
from dflash_audit.cli.options import audited, gate
from dflash_audit.cli.options import sweep as sweep_options
from dflash_audit.cli.terminal import complain, leave, screen, write_err, write_out

MOST_ON_STDERR: Final = 40
"""Rows of the table that stderr gets."""


def command(
    named: sweep_options.Sources = None,
    file: sweep_options.From = None,
    author: sweep_options.Author = None,
    search: sweep_options.Search = None,
    jobs: sweep_options.Jobs = sweep_options.DEFAULT_JOBS,
    output: sweep_options.Output = None,
    resume: sweep_options.Resume = False,
    style: sweep_options.Format = None,
    engine: audited.EnginesThatGate = None,
    quantization: audited.Quantization = None,
    tp: audited.Sizes = None,
    gpu: audited.Card = DEFAULT_CARD,
    attention_backend: audited.AttentionBackend = None,
    target: audited.Target = None,
    fail_on: gate.FailsOn = None,
    select: gate.Select = None,
    ignore: gate.Ignored = None,
    strict: gate.Strict = None,
) -> None:
    """Audit many checkpoints: exit 3 where one could not be read, else 1 where one fails, else 0."""

    from dflash_audit.auditing import Request, audit, target_read
    from dflash_audit.errors import Unreadable
    from dflash_audit.formats.json_report import conditions_document
    from dflash_audit.formats.sweep_table import render
    from dflash_audit.gate.gated import gated
    from dflash_audit.report import Report
    from dflash_audit.sweeping.row import compared, key_of
    from dflash_audit.sweeping.sweep import by_key, sweep

    sweep_options.profiles_alone(engine or ())
    sizes = (tp or audited.RankSizes()).sizes
    gating, conditions = audited.asked(engine, sizes, gpu, quantization, attention_backend)
    shown = sweep_options.on_stdout(style, output)
    sources = by_key(sweep_options.all_sources(named or [], file, author, search))
    controls = gate.controls(
        sweep_options.least_trusted(sources.values()), fail_on, select, ignore, None, strict
    )
    try:
        # Read once, for all of them.
        request = target_read(Request("", gating, conditions, controls.fail_on, target=target, ranks=sizes))
    except Unreadable as error:
        complain([error.message])
        raise typer.Exit(sweep_options.NOT_READ) from None
    read = request.conditions.target
    target_key = None if read is None else key_of(read.origin.kind, read.origin.id, read.origin.revision)
    asked = compared(conditions_document(conditions, sizes, controls.fail_on), target_key)
    earlier = sweep_options.earlier(output, resume, gating, asked)
    lines = sweep_options.lines(output, shown)

    def judged(source: str) -> Report:
        return gated(audit(request._replace(source=source)), controls)

    # Many audits in one process leave cycles behind that add up, as one does not.
    gc.enable()
    crowded = shown == "jsonl" and output is None and sys.stdout.isatty()
    outcome = sweep(sources, earlier, judged, jobs, lines, bar=not crowded)
    if shown == "table":
        write_out(render(outcome.rows, outcome.exit_code, screen()))
    else:
        write_err(render(outcome.rows, outcome.exit_code, screen(stream=sys.stderr), MOST_ON_STDERR))
    complain(outcome.troubles)
    if outcome.stopped:
        leave(outcome.exit_code)
    raise typer.Exit(outcome.exit_code)
