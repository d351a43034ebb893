"""The card is older than what this engine serves in BF16.

Below compute capability 8.0 the engines serve a BF16 model in FP16, whatever its config says, and below 7.5
they serve nothing.

## Why it matters

DFlash drafts are trained in BF16, and their residual stream leaves the range of FP16: a DFlash2 draft that
accepted two tokens in five in BF16 accepted none of 1,100 in FP16 (vllm#55250).

## Example

Before:

    dflash-audit DRAFT --gpu t4

After:

    dflash-audit DRAFT --gpu a100

## How to fix

Serve on a card of compute capability 8.0 or more.
"""

from collections.abc import Iterator

from dflash_audit.diagnosis.sglang_draft import is_sglang
from dflash_audit.diagnosis.vllm_draft import is_vllm
from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.finding import Finding
from dflash_audit.sources.checkpoint import Checkpoint

LEAST = 75
BF16 = 80
"""Source: SGLang 0.5.23 `maybe_downgrade_dtype_for_legacy_gpu` in
`srt/model_executor/model_runner_components/load_model_utils.py`; vLLM 0.33.0 `platforms/cuda.py`
(`supported_dtypes`), and the cards that its compiled kernels are for, sm_75 and up."""


def find(run: EngineRun, checkpoint: Checkpoint, conditions: Conditions) -> Iterator[Finding]:
    """One finding for a card without BF16, an error where the engine does not run at all."""
    del checkpoint
    if not (is_sglang(run) or is_vllm(run.engine)) or conditions.capability >= BF16:
        return
    card = f"compute capability {conditions.capability / 10:.1f}"
    if conditions.capability < LEAST:
        message = f"{run.engine} does not run on a card of {card}: it wants 7.5 or more."
    else:
        message = f"{run.engine} serves in FP16 on a card of {card}, and a DFlash draft overflows there."
    yield Finding(
        rule="old-card",
        severity="error" if conditions.capability < LEAST else "warning",
        engine=run.engine,
        subject=card,
        message=message,
        hint="Serve on a card of compute capability 8.0 or more.",
    )
