"""A Nemotron 3.5 draft is not taken for one, by a single key of its config.

SGLang knows this layout by its config alone: the class, an embedding of its own and no head, NVFP4 weights
(`quant_algo` `W4A16_NVFP4`), two lists of tapped layers of which the second is the first plus one, and
`sample_from_anchor` false. All of it must hold.

## Why it matters

Without a word the draft is built as a plain DFlash draft: its own embedding and its attention sinks are
dropped, `fc` is built dense, and its tokens are taken to start one place later than they do.

## Example

Before, an export that lost the algorithm's name:

    "quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16}

After:

    "quantization_config": {"quant_method": "modelopt", "quant_algo": "W4A16_NVFP4", "group_size": 16}

## How to fix

Restore the key that the finding names. A draft that was exported in another precision (BF16, FP8) cannot be
served by this version as what it is.
"""

from collections.abc import Iterator

from dflash_audit.diagnosis.nemotron import near_miss
from dflash_audit.diagnosis.sglang_draft import is_sglang
from dflash_audit.diagnosis.stored import stored_modules
from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding
from dflash_audit.sources.checkpoint import Checkpoint


def find(run: EngineRun, checkpoint: Checkpoint) -> Iterator[Finding]:
    """One finding if all but one of the conditions hold, and the draft has an embedding of its own."""
    missed = near_miss(run.config) if is_sglang(run) and run.config is not None else None
    if missed is None or "embed_tokens" not in stored_modules(checkpoint.tensors):
        return
    key, wanted = missed
    yield Finding(
        rule="nemotron-near-miss",
        severity="error",
        engine=run.engine,
        subject=key,
        message=(
            f"In all but {key} this is a Nemotron 3.5 draft, so {run.engine} does not take it for one: it"
            " drops the draft's own embedding and any sinks, and places its tokens as a plain draft's."
        ),
        hint=f"Set {key} to {wanted}.",
        subjects=(key,),
    )
