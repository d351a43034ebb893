"""The dtype in the config is not the one on disk.

## Why it matters

Not to SGLang, which builds a draft in bfloat16 whatever `dtype` says: this is a note. Other engines build
in the dtype that the config names, and a draft that was trained in bfloat16 overflows in float16.

## Example

Before, with BF16 tensors:

    "dtype": "float16"

After:

    "dtype": "bfloat16"

## How to fix

Set `dtype` (or the older `torch_dtype`) to the dtype that the tensors are stored in.
"""

from collections.abc import Iterator

from dflash_audit.diagnosis.sglang_draft import Draft, read_draft
from dflash_audit.dtypes import DENSE_FLOATS, TORCH
from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding
from dflash_audit.sources.checkpoint import Checkpoint

KEYS = ("dtype", "torch_dtype")


def find(run: EngineRun, checkpoint: Checkpoint) -> Iterator[Finding]:
    """One finding if all dense weights are stored in one dtype, and the config names another."""
    draft = read_draft(run, checkpoint)
    stored = _stored(draft) if draft else None
    if draft is None or stored is None:
        return
    for key in KEYS:
        said = draft.raw.get(key)
        if isinstance(said, str) and said.removeprefix("torch.") in DENSE_FLOATS - {stored}:
            yield Finding(
                rule="config-dtype",
                severity="note",
                engine=run.engine,
                subject=key,
                message=(
                    f"{key} is {said}, and the dense weights are stored as {stored}: {run.engine} builds in"
                    " bfloat16 either way, other engines in what the key says."
                ),
                hint=f"Set {key} to {stored}.",
                subjects=(key,),
            )


def _stored(draft: Draft) -> str | None:
    """The one dtype of all dense weights; norms and scales are often kept in another."""
    dtypes = {
        TORCH.get(tensor.dtype)
        for name, tensor in draft.tensors.items()
        if name.endswith(".weight") and len(tensor.shape) == 2
    }
    dense = dtypes & DENSE_FLOATS
    return dense.pop() if len(dense) == 1 else None
