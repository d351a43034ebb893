"""The command `tree`: the modules that an engine builds."""

import typer

from dflash_audit.cards import CARDS, DEFAULT_CARD
from dflash_audit.cli.options import audited
from dflash_audit.cli.terminal import complain, screen, write_out
from dflash_audit.engines import DEFAULT, ENGINES


def command(
    source: audited.Source,
    revision: audited.Revision = None,
    engine: audited.Engine = DEFAULT,
    quantization: audited.Quantization = None,
    tp: audited.Ranks = 1,
    gpu: audited.Card = DEFAULT_CARD,
    attention_backend: audited.AttentionBackend = None,
    target: audited.Target = None,
) -> None:
    """Print the module tree that an engine builds, and what happens to each parameter."""
    from dflash_audit.auditing import Request, audit
    from dflash_audit.engine_run import Conditions
    from dflash_audit.formats import tree_text

    audited.one_rank([engine], tp)
    gating = frozenset((*ENGINES, engine)) - {"all"}
    conditions = Conditions(tp, CARDS[gpu], quantization, attention_backend)
    report = audit(Request(source, gating, conditions, revision=revision, target=target))
    complain([report.error.message] if report.error else [])
    for run in report.runs:
        if engine in (run.engine, "all"):
            write_out(tree_text.render(run, report.origin.id, screen()))
    raise typer.Exit(report.exit_code if report.error else 0)
