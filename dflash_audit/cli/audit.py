"""The command `audit`: what a checkpoint's engines do with it."""

from typing import Annotated

import typer

from dflash_audit.cards import DEFAULT_CARD
from dflash_audit.cli import options
from dflash_audit.cli.terminal import complain, screen, write_out


def command(
    source: options.Source,
    revision: options.Revision = None,
    engine: options.EnginesThatGate = None,
    quantization: options.Quantization = None,
    tp: options.Sizes = None,
    gpu: options.Card = DEFAULT_CARD,
    attention_backend: options.AttentionBackend = None,
    target: options.Target = None,
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
    from dflash_audit.auditing import Request, audit
    from dflash_audit.deliver import deliver
    from dflash_audit.gate.gated import gated

    outputs = options.outputs(formats or [], file, as_json)
    options.own_file(write_baseline, outputs)
    controls = options.controls(source, fail_on, select, ignore, baseline, strict)
    sizes = (tp or options.RankSizes()).sizes
    gating, conditions = options.asked(engine, sizes, gpu, quantization, attention_backend, warmup)
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
    report = audit(Request(source, gating, conditions, controls.fail_on, revision, target, warm, sizes))
    report = gated(report, controls, write_baseline)
    report, troubles = deliver(report, outputs, screen(verbose), write_out)
    complain(troubles)
    raise typer.Exit(report.exit_code)
