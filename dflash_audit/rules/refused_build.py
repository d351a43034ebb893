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

import re
from collections.abc import Iterable, Iterator
from typing import Final

from dflash_audit.diagnosis.stopped import by_ranks, stopped
from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding

DFLASH_KEY: Final = re.compile(
    r"(dflash_config\.)?\b((selector|conv|lilicorr)_\w+|target_layer_ids|block_size)|\bdflash_config\b"
)
"""A key of a draft's own, which a lost `dflash_config` takes along."""


def find(run: EngineRun) -> Iterator[Finding]:
    """One finding if the engine stops while it builds."""
    return stopped(run, "build", "refused-build", run.model_class or "the draft", _hint(run))


def _hint(run: EngineRun) -> str:
    reason = run.refusal.reason if run.refusal else ""
    if "target of the config" in reason:
        return 'Keep "targets": ["Linear"], and leave layers out by the ignore list.'
    if "schemes for" in reason:
        return "Ignore all shards of the fused layer, or none of them."
    if by_ranks(run):
        return "Serve with a number of ranks (--tp) that goes with these sizes."
    if "compute capability" in reason:
        return "Serve on a card that takes this (--gpu), or leave out of the draft what it does not take."
    own = [match[0] for match in DFLASH_KEY.finditer(reason)]
    if own:
        return f"Mend {_either(own)}; a lost dflash_config can be taken from the original draft."
    keys = [word for word in re.findall(r"\w+", reason) if "_" in word and word in (run.config or {})]
    if keys:
        return f"Mend {_either(keys)} in config.json, or what does not go with it."
    return f"Mend in config.json, in the quantization config or on the server: {reason.rstrip('.')}."


def _either(keys: Iterable[str]) -> str:
    return " or ".join(dict.fromkeys(keys))
