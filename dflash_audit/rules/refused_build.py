"""A constructor of the draft raises.

The class is known and its config was read, but the draft cannot be built from it: a field of
`dflash_config` is missing or out of range, sizes do not divide, the quantization config has no scheme for a
layer.

## Why it matters

The server stops before it loads a weight.

## Example

Before, an export lost the selector's keys:

    "architectures": ["DFlash2DraftModel"],
    "dflash_config": {"block_size": 8, "target_layer_ids": [5, 19]}

After:

    "architectures": ["DFlash2DraftModel"],
    "dflash_config": {"target_layer_ids": [5, 19], "selector_rank": 256, "selector_top_k": 16}

## How to fix

Mend what the message names. A lost `dflash_config` can be taken from the draft that was exported. Where no
target of the quantization config matches a layer, keep `"targets": ["Linear"]` and exclude by `ignore`.
"""

from collections.abc import Iterator
from typing import Final

from dflash_audit.diagnosis.stopped import stopped
from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding

DFLASH_KEYS: Final = ("dflash_config", "selector_", "conv_", "target_layer_ids", "block_size", "lilicorr_")


def find(run: EngineRun) -> Iterator[Finding]:
    """One finding if the engine stops while it builds."""
    return stopped(run, "build", "refused-build", run.model_class or "the draft", _hint(run))


def _hint(run: EngineRun) -> str:
    reason = run.refusal.reason if run.refusal else ""
    if "target of the config" in reason:
        return 'Keep "targets": ["Linear"], and leave layers out by the ignore list.'
    if "schemes for" in reason:
        return "Ignore all shards of the fused layer, or none of them."
    if any(key in reason for key in DFLASH_KEYS):
        return "Mend the named field; a lost dflash_config can be taken from the original draft."
    return "Mend what the message names: in config.json, in the quantization config or on the server."
