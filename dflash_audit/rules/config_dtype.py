"""The dtype in the config is not the one on disk.

## Why it matters

Without `--dtype` SGLang builds a draft in what its config says, and in float16 where that is float32. A
target in bfloat16 then hands over features that a dense `fc` in float16 does not multiply: the first request
fails. That is a warning, for with `--dtype bfloat16`, as the audit replays it, the draft serves. Where the
config says bfloat16 the weights are cast as they load: that is a note.

## Example

Before, with BF16 tensors:

    "dtype": "float16"

After:

    "dtype": "bfloat16"

## How to fix

Set `dtype` (or the older `torch_dtype`) to `bfloat16`, and store the tensors in it.
"""

from collections.abc import Iterator

from dflash_audit.diagnosis.sglang_draft import Draft, read_draft
from dflash_audit.dtypes import DENSE_FLOATS, TORCH
from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.engines.sglang.two_models import DTYPE_KEYS, SERVED, said_dtype, served
from dflash_audit.finding import Finding, Severity
from dflash_audit.sources.checkpoint import Checkpoint


def find(run: EngineRun, checkpoint: Checkpoint, conditions: Conditions) -> Iterator[Finding]:
    """One finding if all dense weights are stored in one dtype, and the config names another.

    What a named target makes of it is told by `target-dtype`.

    Source: SGLang 0.5.23 `srt/configs/model_config.py`, `_get_and_verify_dtype`; `srt/models/dflash.py`,
    `project_target_hidden`, which casts no features.
    """
    draft = read_draft(run, checkpoint)
    stored = _stored(draft) if draft else None
    if draft is None or stored is None:
        return
    target_known = conditions.target is not None and said_dtype(conditions.target) is not None
    for key in DTYPE_KEYS:
        said = draft.raw.get(key)
        if isinstance(said, str) and said.removeprefix("torch.") in DENSE_FLOATS - {stored}:
            yield _finding(draft, key, said.removeprefix("torch."), stored, target_known)


def _finding(draft: Draft, key: str, said: str, stored: str, target_known: bool) -> Finding:
    built = served(said, draft.config.get("model_type"))
    severity: Severity = "note"
    consequence, hint = f"{draft.engine} casts them as it loads", f"Store the weights as {said}."
    if built != SERVED and not target_known:
        severity = "warning"
        consequence = (
            f"unless the server is given --dtype {SERVED}, {draft.engine} builds the draft in {built}, and"
            f" its fc does not take the features of a target in {SERVED}"
        )
        hint = f"Set {key} to {SERVED}."
    message = f"{key} is {said}, and the dense weights are stored as {stored}: {consequence}."
    return Finding("config-dtype", severity, draft.engine, key, message, hint, (key,))


def _stored(draft: Draft) -> str | None:
    """The one dtype of all dense weights; norms and scales are often kept in another."""
    dtypes = {
        TORCH.get(tensor.dtype)
        for name, tensor in draft.tensors.items()
        if name.endswith(".weight") and len(tensor.shape) == 2
    }
    dense = dtypes & DENSE_FLOATS
    return dense.pop() if len(dense) == 1 else None
