"""The draft's forward pass ends the process that it runs in, or does not end.

A device-side assert, a crash, an exception in the arithmetic, or more time than `--timeout` gives. The
process is one of its own; the audit goes on. What the machine cannot do (memory, a card that is not there)
is no finding: the program says so and exits with 3.

## Why it matters

A server meets the same on its first request, and ends; after an assert on a GPU nothing else can be run in
that process either.

## Example

Before, sizes that do not fit one another get as far as the forward pass:

    "hidden_size": 5120, with an fc.weight of 4,096 rows

After:

    "hidden_size": 4096

## How to fix

The stage and the assert or exception say which numbers do not fit: mend the keys of config.json that they
come from, or export the tensors again. Where an id indexes past a table, `warmup-candidate-range` says
which, if it was found before.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding

if TYPE_CHECKING:
    from dflash_audit.warmup.result import Kind, WarmUp

SIZES: Final = "Set the sizes in config.json to those of the tensors, or export the tensors again."

SAID: Final[Mapping["Kind", tuple[str, str]]] = {
    "assert": ("it runs into a device-side assert", "Look for an id that indexes past a table of the draft."),
    "crash": ("it crashes", "Run it with --device cpu, where the operation that fails says why."),
    "timeout": ("it does not end", "Give it more seconds with --timeout, if this machine is slow."),
    "error": ("it raises", SIZES),
}
"""Deaths that a draft can die -> what happens, and the mend."""


def find(warmup: "WarmUp", run: EngineRun) -> Iterator[Finding]:
    """One finding for a death that the draft's own forward pass died."""
    death = warmup.death
    if death is None or not death.by_draft:
        return
    happens, hint = SAID[death.kind]
    where = "" if warmup.device == "auto" else f" on {warmup.device}"
    yield Finding(
        rule="warmup-died",
        severity="error",
        engine=run.engine,
        subject=f"the stage {death.stage}",
        message=f"The draft's forward pass ends here{where}, {happens}: {death.detail.rstrip('.')}.",
        hint=hint,
    )
