"""A quantized weight has no scale on disk.

FP8, INT8 and 4-bit numbers mean nothing without the scale that they were divided by. It stands beside the
weight as `weight_scale`, `weight_scale_inv` or `scales`.

## Why it matters

No config mends it: the scale is lost. A converter that passes numbers through and takes the scale for used
up writes such files, and the draft accepts nothing.

## Example

Before:

    fc.weight F8_E4M3 [4096, 20480]

After:

    fc.weight F8_E4M3 [4096, 20480], fc.weight_scale F32 [4096, 1]

## How to fix

Export the module again with its scale, or dense.
"""

from collections.abc import Iterator, Sequence

from dflash_audit.diagnosis.stored import State, stored_modules
from dflash_audit.facts import Facts
from dflash_audit.finding import Finding
from dflash_audit.fold import title


def find(facts: Facts, findings: Sequence[Finding]) -> Iterator[Finding]:
    """One finding for all quantized weights without a scale that some engine has a module for."""
    del findings
    trees = [run.tree.modules for run in facts.runs if run.tree is not None]
    bare = [
        stored.name
        for stored in stored_modules(facts.checkpoint.tensors).values()
        if stored.state is State.QUANTIZED and stored.scale is None
    ]
    names = tuple(name for name in bare if any(tree.owner(f"{name}.weight") for tree in trees))
    if names:
        yield Finding(
            rule="weight-without-scale",
            severity="warning",
            engine=None,
            subject=title(names),
            message="The weight is quantized and no scale stands beside it: what its numbers mean is lost.",
            hint="Export the module again with its scale, or dense.",
            subjects=names,
        )
