"""A tensor goes nowhere, and may: the engine has its own, or does not use it.

Rotary caches are computed anew, the target's head and embedding are borrowed, the scales of a KV cache are
not used by every layer, and DSpark's confidence head is not built by the default server.

## Why it matters

It does not: this is a note. The tensor takes room in the download for nothing.

## Example

Before, a draft of 2.8 GB that ships a copy of the target's embedding and head:

    embed_tokens.weight, lm_head.weight, fc.weight, …

After, 0.8 GB:

    fc.weight, …

## How to fix

Nothing has to be. Leave the tensors out of the next upload if no other engine reads them.
"""

from collections.abc import Iterator

from dflash_audit.drops import ignored
from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding


def find(run: EngineRun) -> Iterator[Finding]:
    """One finding a reason."""
    reasons: dict[str, list[str]] = {}
    for tensor, reason in ignored(run):
        reasons.setdefault(reason, []).append(tensor.name)
    for reason, names in reasons.items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        them = "them" if more else "it"
        yield Finding(
            rule="ignored-tensor",
            severity="note",
            engine=run.engine,
            subject=names[0] + more,
            message=f"{run.engine} does not load {them}: {reason}.",
            hint=None,
            subjects=tuple(names),
        )
