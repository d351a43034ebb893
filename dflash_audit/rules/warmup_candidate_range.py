"""In the warm-up, the draft asks a table for a row that it does not have.

The ids of candidates, tokens or the mask index an embedding or a codebook, and one of them lies outside.

## Why it matters

On a GPU an id past the end is a device-side assert: it ends the CUDA context, and the server with it. A
negative one picks another row in silence, and the draft is as good as random from there.

## Example

Before, a selector that knows fewer tokens than the head proposes:

    "vocab_size": 151936, with a codebook of 151,669 rows

After:

    "vocab_size": 151669

## How to fix

Set the vocabulary in config.json to the rows of the tables on disk, or export tables of the target's
whole vocabulary.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding

if TYPE_CHECKING:
    from dflash_audit.warmup.result import WarmUp

HINT: Final = "Make the vocabulary in config.json that of the tables on disk, or export tables of all tokens."


def find(warmup: "WarmUp", run: EngineRun) -> Iterator[Finding]:
    """One finding for a table, and for what comes of the ids outside of it."""
    past: dict[tuple[str, int], list[int]] = {}
    for table, at, rows in warmup.out_of_range:
        past.setdefault((table, rows), []).append(at)
    for (table, rows), ids in past.items():
        yield Finding("warmup-candidate-range", "error", run.engine, table, _message(ids, rows), HINT)


def _message(ids: list[int], rows: int) -> str:
    worst = max(ids, key=lambda at: at if at >= rows else -1)
    told = f"The id {worst:,} indexes its {rows:,} rows"
    if len(ids) > 1:
        told += f", and {len(ids) - 1:,} more ids that it does not have"
    if worst >= rows:
        return f"{told}: on a GPU that is a device-side assert, and the server ends with it."
    return f"{told}: it wraps around to another row in silence, and what is drafted is of no use."
