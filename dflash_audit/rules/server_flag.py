"""The draft is served only with a server flag that is off by default.

## Why it matters

The server refuses the draft on default flags. Nothing is wrong with the checkpoint.

## Example

Before:

    sglang serve … --speculative-draft-model-path DRAFT

After:

    sglang serve … --speculative-draft-model-path DRAFT --speculative-draft-attention-backend trtllm_mha

## How to fix

Start the server with the flag, and name it in the model card.
"""

from collections.abc import Iterator

from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding


def find(run: EngineRun) -> Iterator[Finding]:
    """One finding a flag."""
    for needed in run.flags:
        yield Finding(
            rule="server-flag",
            severity="warning",
            engine=run.engine,
            subject=needed.flag,
            message=f"{run.engine} refuses this draft without {needed.flag}: {needed.reason}.",
            hint=f"Start the server with {needed.flag}.",
        )
