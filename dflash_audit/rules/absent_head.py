"""The config announces a head of the draft's own, and no tensor holds it, or a part of it.

vLLM lends a draft its target's head where the draft has none. It goes by `has_own_lm_head` there, and not
by what came.

## Why it matters

The head stays as it was made: the draft proposes tokens out of what was in memory, and nothing is accepted.

## Example

Before: the head was left out of the files, and the key was not.

    "has_own_lm_head": true

After:

    "has_own_lm_head": false

## How to fix

Remove the key, or add `lm_head.weight`.
"""

from collections.abc import Iterator

from dflash_audit.diagnosis.vllm_draft import is_vllm
from dflash_audit.engine_run import EngineRun
from dflash_audit.engines.vllm.architectures import LOADED_AS_DSPARK
from dflash_audit.finding import Finding
from dflash_audit.loadplan import ONCE_A_SHARD
from dflash_audit.sources.checkpoint import Checkpoint

KEY = "has_own_lm_head"


def find(run: EngineRun, checkpoint: Checkpoint) -> Iterator[Finding]:
    """One finding for a draft that loads; the head of a DSpark or XPress draft is lent by what came.

    Source: vLLM 0.33.0 `v1/worker/gpu/spec_decode/dflash/utils.py`, `load_dflash_model`.
    """
    del checkpoint
    config, plan = run.config, run.plan
    if not is_vllm(run.engine) or config is None or plan is None or run.refusal is not None:
        return
    by_key = config.get(KEY) and run.model_class not in LOADED_AS_DSPARK
    if not by_key:
        return
    filled = plan.filled()
    missing = [
        name
        for name in plan.slots
        if name.startswith("lm_head.") and name not in filled and not name.endswith(ONCE_A_SHARD)
    ]
    if not missing:
        return
    whole = not any(name.startswith("lm_head.") for name in filled)
    told = "no tensor holds one" if whole else f"no tensor holds its {missing[0].removeprefix('lm_head.')}"
    yield Finding(
        rule="absent-head",
        severity="error",
        engine=run.engine,
        subject=KEY,
        message=(
            f"{KEY} is true, and {told}: {run.engine} does not take the target's head, and runs"
            " on what was in memory."
        ),
        hint=f"Remove {KEY}, or add {missing[0]}.",
        subjects=(KEY,),
    )
