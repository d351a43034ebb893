"""The target is served in another dtype than the draft.

Without `--dtype` SGLang serves each of the two in the dtype that its own config says (in float16 for float32,
or for none).
The features of the target go into the draft's `fc` as they are.

## Why it matters

`fc` does not multiply features of another dtype than its own: the first request fails. Beside a target in
float16 a draft is better served in bfloat16 all the same: the convolutions of a DFlash2 draft overflow
float16, and it then accepts nothing.

## Example

Before, a draft in bfloat16 beside an AWQ target:

    "torch_dtype": "float16"

After, for both:

    sglang serve --model-path TARGET --dtype bfloat16 --speculative-draft-model-path DRAFT

## How to fix

Start the server with `--dtype bfloat16`, or set the dtype of the target's config.
"""

from collections.abc import Iterator

from dflash_audit.diagnosis.with_target import read_pair
from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.engines.sglang.two_models import SERVED, apart
from dflash_audit.finding import Finding
from dflash_audit.sources.checkpoint import Checkpoint


def find(run: EngineRun, checkpoint: Checkpoint, conditions: Conditions) -> Iterator[Finding]:
    """One finding if the target's config says a dtype, and the draft is served in another.

    Source: SGLang 0.5.23 `srt/models/dflash.py`, `project_target_hidden`, which casts no features; see
    `two_models`. Public records: vllm#55250, dflash-mlx#60.
    """
    pair = read_pair(run, checkpoint, conditions)
    dtypes = None if pair is None else apart(pair.draft.config, pair.draft.model_class, pair.target)
    if pair is None or dtypes is None:
        return
    own, theirs = dtypes
    said = "" if pair.draft.config.get("dtype") is not None else ", for its config says none"
    yield Finding(
        rule="target-dtype",
        severity="warning",
        engine=run.engine,
        subject="dtype",
        message=(
            f"Without --dtype {run.engine} serves the target in {theirs} and the draft in {own}{said}: its fc"
            " does not take the features, and the first request fails."
        ),
        hint=f"Start the server with --dtype {SERVED}.",
        subjects=("dtype",),
    )
