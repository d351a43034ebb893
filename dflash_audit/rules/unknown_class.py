"""The engine has no class of the name in `architectures`.

An engine picks the class that it builds by `architectures` in config.json, and knows a fixed list of names.

## Why it matters

The server stops with "not supported". A name that an older or a newer version knows is of no help to this
one.

## Example

Before:

    "architectures": ["Qwen3DFlashModel"]

After:

    "architectures": ["DFlashDraftModel"]

## How to fix

Name the class that the draft was trained as, in a list: DFlashDraftModel, DFlash2DraftModel,
DFlashLagunaForCausalLM, LiLiCorrDraftModel or Qwen3DSparkModel. The finding names the one that the tensors
are of, where they are a draft's. If the name is right, and another engine has it, serve it with that one.
"""

from collections.abc import Iterator

from dflash_audit.diagnosis.draft_class import class_to_name, told_by_tensors
from dflash_audit.diagnosis.stopped import stopped
from dflash_audit.diagnosis.vllm_draft import is_vllm
from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding
from dflash_audit.sources.checkpoint import Checkpoint


def find(run: EngineRun, checkpoint: Checkpoint) -> Iterator[Finding]:
    """One finding if the engine finds no class."""
    if run.refusal is not None and run.refusal.stage == "class":
        yield from stopped(run, "class", "unknown-class", "architectures", _hint(run, checkpoint))


def _hint(run: EngineRun, checkpoint: Checkpoint) -> str:
    family = told_by_tensors(checkpoint)
    if family is not None:
        return class_to_name(family, checkpoint.config, is_vllm(run.engine))
    listed = "" if isinstance(checkpoint.config.get("architectures"), list) else ", in a list of names"
    return (
        f"Name the draft class that it was trained as in architectures{listed}: the tensors are those of no"
        " draft that this audit knows."
    )
