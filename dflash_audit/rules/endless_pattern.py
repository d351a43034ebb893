r"""A pattern of the quantization config takes too long to match the name of a layer.

Python tries every way in which a pattern may fit. Where a repeated group repeats something itself, as
`(a+)+` does, there are twice as many ways with each letter of the name, and a name has thirty. The audit
gives a match five seconds of the CPU where a pattern might be so, in a process of its own.

## Why it matters

The engine matches the same patterns with the same function and no limit: the server hangs while it builds
the draft, without a word, on one core, for minutes or for years.

## Example

Before: there are millions of ways to share out a name among the repetitions, and none of them ends in `!`.

    "ignore": ["re:((\\w|\\.)+)+!"]

After: nothing is repeated twice.

    "ignore": ["re:[\\w.]+!"]

## How to fix

Rewrite the pattern without a repetition inside of a repetition; a plain suffix such as `o_proj`, or an
alternative such as `re:.*\\.(q|k|v)_proj$`, says what a list needs to say.
"""

from collections.abc import Iterator

from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding


def find(run: EngineRun) -> Iterator[Finding]:
    """One finding if the engine hangs in a match."""
    if run.refusal is None or run.refusal.pattern is None:
        return
    yield Finding(
        rule="endless-pattern",
        severity="error",
        engine=run.engine,
        subject=run.refusal.pattern,
        message=f"{run.engine} hangs while it builds this draft: {run.refusal.reason}.",
        hint="Rewrite the pattern without a repetition inside of a repetition.",
        subjects=(run.refusal.pattern,),
    )
