"""The quantization method does not take its config.

The engine has settled on a method, and the method's reader raises: a config group without targets, a key
that it does not know, a file that is missing.

## Why it matters

The server stops before it builds the draft.

## Example

Before, a config group of compressed-tensors names no targets:

    "group_0": {"weights": {"num_bits": 8, "type": "int", "strategy": "channel"}}

After:

    "group_0": {
        "targets": ["Linear"],
        "weights": {"num_bits": 8, "type": "int", "strategy": "channel"}
    }

## How to fix

Mend `quantization_config`, or write it again with the tool that quantized the checkpoint. If the checkpoint
is dense, remove it.
"""

from collections.abc import Iterator

from dflash_audit.diagnosis.stopped import stopped
from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding


def find(run: EngineRun) -> Iterator[Finding]:
    """One finding if the engine stops at the quantization config."""
    hint = "Mend quantization_config, or remove it if the checkpoint is dense."
    return stopped(run, "quant_config", "refused-quantization", "quantization_config", hint)
