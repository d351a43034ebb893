"""The checkpoint's files are odd, and the engine takes them all the same.

- A tensor stands twice: in two files, or in the header of one. The last one counts.
- The index and the files disagree: it puts a tensor into a file that does not hold it, or leaves out a tensor
  or a file. SGLang takes from the index only which files to read, and loads those whole.
- The weights are in another program's layout (EXL3, MLX).
- The cache of an offline audit holds only a part of the repo.

## Why it matters

Nothing objects, and what is loaded may not be what was meant: an old shard beside the new ones, a copy that
wins by the name of its file, a tensor that no file holds and that stays unfilled. Other programs read the
same files otherwise.

## Example

Before, after an export into a folder that was not empty:

    model-00001-of-00002.safetensors   fc.weight, ...
    model-00002-of-00002.safetensors   layers.1.mlp.up_proj.weight, ...
    model.safetensors                  all of it, from the run before

After: `model.safetensors` deleted.

## How to fix

Export into an empty folder, so that each tensor is in one file and the index is written with the files. For a
repo on the Hub, delete the files that do not belong to the export. For a partial cache, download the repo.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from dflash_audit.facts import Facts
from dflash_audit.finding import Finding
from dflash_audit.fold import fold

HINTS: Final = {
    "foreign-layout": "Convert the draft for the engine, or serve the one that it was made from.",
    "partial-snapshot": "Download the repo, or audit it online.",
}

EXPORT: Final = "Export the draft again into an empty folder."


def find(facts: Facts, findings: Sequence[Finding]) -> Iterator[Finding]:
    """One finding for all tensors and files that are odd in the same way."""
    del findings
    same: dict[tuple[str, str], list[str]] = {}
    for remark in facts.checkpoint.remarks:
        same.setdefault((remark.kind, remark.message), []).append(remark.subject)
    for (kind, message), names in same.items():
        first, *others = fold(names)
        yield Finding(
            rule="odd-layout",
            severity="warning",
            engine=None,
            subject=f"{first} and {len(others)} more" if others else first,
            message=message,
            hint=HINTS.get(kind, EXPORT),
            subjects=tuple(names),
        )
