"""The query heads cannot be shared out evenly among the key and value heads.

In grouped-query attention each key and value head serves as many query heads as the next. SGLang builds
and loads a draft in which they do not divide; its attention kernels refuse it at the first forward.

## Why it matters

FlashAttention 3, the default on an H200, and FlashInfer, the default elsewhere, stop the server in its
warm-up. Triton's kernels object to nothing and read keys and values of other tokens.

## Example

Before: the key is missing, and `Qwen3Config` takes 32.

    "num_attention_heads": 8

After:

    "num_attention_heads": 8, "num_key_value_heads": 2

## How to fix

Set `num_attention_heads` and `num_key_value_heads` to those that the draft was trained with. With `head_dim`,
the rows of `q_proj` and `k_proj` say how many they are.
"""

from collections.abc import Iterator

from dflash_audit.diagnosis.sglang_draft import is_sglang, whole
from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.finding import Finding
from dflash_audit.sources.checkpoint import Checkpoint


def find(run: EngineRun, checkpoint: Checkpoint, conditions: Conditions) -> Iterator[Finding]:
    """One finding for a draft that loads.

    Source: SGLang 0.5.23 `DFlashAttention` in `srt/models/dflash.py`, and the default in
    `srt/arg_groups/model_override_base.py:311`. sgl-kernel's FlashAttention 3: "Number of heads in
    key/value must divide number of heads in query". FlashInfer's `attention/scheduler.cuh:773`.
    `kernels/ops/attention/extend_attention.py` divides and does not look at the rest.
    """
    del checkpoint
    if not is_sglang(run) or run.config is None or run.plan is None or run.refusal is not None:
        return
    heads = whole(run.config.get("num_attention_heads"))
    key_heads = whole(run.config.get("num_key_value_heads", heads))
    if not heads or not key_heads:
        return
    own, own_keys = heads // conditions.tp, max(1, key_heads // conditions.tp)
    if own % own_keys == 0:
        return
    yield Finding(
        rule="head-groups",
        severity="error",
        engine=run.engine,
        subject="num_key_value_heads",
        message=(
            f"{heads} query heads cannot be shared out evenly among {key_heads} key and value heads:"
            f" {run.engine} loads the draft, and stops at its first attention."
        ),
        hint="Set num_attention_heads and num_key_value_heads to those that the draft was trained with.",
    )
