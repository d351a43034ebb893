"""The draft suffers from the server's --quantization, which was meant for the target.

SGLang gives a draft the target's `--quantization`, unless it is told another one, and only a
`quantization_config` of the draft's own prevails over it.

## Why it matters

A dense draft is then asked for a quantization config that it does not have, or built for tensors that it
does not hold. The server stops, or the draft runs on what was in memory.

## Example

Before:

    sglang serve --model-path TARGET --quantization awq --speculative-draft-model-path DRAFT

After:

    sglang serve --model-path TARGET --quantization awq --speculative-draft-model-path DRAFT \\
        --speculative-draft-model-quantization unquant

## How to fix

Start the server with `--speculative-draft-model-quantization unquant`, and name it in the model card.
"""

from collections.abc import Iterator
from dataclasses import replace

from dflash_audit.diagnosis.sglang_draft import is_sglang
from dflash_audit.diagnosis.stored import faults
from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.engines import LIVE, engine
from dflash_audit.finding import Finding
from dflash_audit.sources.checkpoint import Checkpoint


def find(run: EngineRun, checkpoint: Checkpoint, conditions: Conditions) -> Iterator[Finding]:
    """One finding if the engine serves the draft as dense, and not under the server's --quantization.

    Source: SGLang 0.5.23 `srt/arg_groups/serving_hook.py`, `speculative_draft_model_quantization`.
    Public record: sglang#28196.
    """
    if run.engine in LIVE or not is_sglang(run) or conditions.quantization is None or not _fails(run):
        return
    bare = engine(run.engine).replay(checkpoint, replace(conditions, quantization=None))
    if bare.skipped is not None or bare.quantization is not None or _fails(bare):
        return
    flag = f"--quantization {conditions.quantization}"
    otherwise = _or_without(conditions)
    yield Finding(
        rule="inherited-quantization",
        severity="warning",
        engine=run.engine,
        subject=flag,
        message=f"The draft is dense and inherits {flag} from the server: without it {run.engine} serves it.",
        hint=f"Start the server with --speculative-draft-model-quantization unquant{otherwise}.",
        subjects=(flag,),
    )


def _or_without(conditions: Conditions) -> str:
    """A target that declares its quantization needs no flag for it."""
    declared = None if conditions.target is None else conditions.target.quantization
    return f", or without --quantization: the target's own config says {declared}" if declared else ""


def _fails(run: EngineRun) -> bool:
    return run.refusal is not None or faults(run) > 0
