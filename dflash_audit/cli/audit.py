"""The command `audit`: what a checkpoint's engines do with it."""

from typing import Annotated

import typer

from dflash_audit.cards import DEFAULT_CARD
from dflash_audit.cli.options import audited, gate, output, warm_up
from dflash_audit.cli.terminal import complain, screen, write_out


def command(
    source: audited.Source,
    revision: audited.Revision = None,
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
    write_baseline: gate.WriteBaseline = None,
    strict: gate.Strict = None,
    formats: output.Formats = None,
    file: output.File = None,
    as_json: output.Json = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print the load plan too.")] = False,
    warmup: warm_up.WarmUp = False,
    device: warm_up.Device = None,
    dtype: warm_up.Dtype = None,
    backend: warm_up.Runs = None,
    blocks: warm_up.Blocks = None,
    context: warm_up.Context = None,
    seed: warm_up.Seed = None,
    timeout: warm_up.Timeout = None,
    provoke: warm_up.Provoke = False,
    against: warm_up.Against = None,
) -> None:
    """Audit a checkpoint: exit 0 when every deciding engine serves it, 1 when not, 3 when it cannot tell."""
    from dflash_audit.auditing import Request, audit
    from dflash_audit.deliver import deliver
    from dflash_audit.gate.gated import gated

    outputs = output.outputs(formats or [], file, as_json)
    output.own_file(write_baseline, outputs)
    controls = gate.controls(source, fail_on, select, ignore, baseline, strict, write_baseline)
    sizes = (tp or audited.RankSizes()).sizes
    gating, conditions = audited.asked(engine, sizes, gpu, quantization, attention_backend, warmup)
    warm = warm_up.warm_up_options(
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
