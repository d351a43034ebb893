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

Name the class that the draft was trained as: DFlashDraftModel, DFlash2DraftModel, DFlashLagunaForCausalLM,
LiLiCorrDraftModel or Qwen3DSparkModel. If its name is right, serve it with an engine that has it.
"""

from collections.abc import Iterator

from dflash_audit.diagnosis.stopped import stopped
from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding


def find(run: EngineRun) -> Iterator[Finding]:
    """One finding if the engine finds no class."""
    hint = "Set architectures to a draft class that this engine has, DFlashDraftModel for one."
    return stopped(run, "class", "unknown-class", "architectures", hint)
