"""Which parameters a load leaves in part as they were, although every shard came."""

import pytest

from dflash_audit.loadplan import Copy, Fill, LoadPlan, Slot
from dflash_audit.sources.checkpoint import Tensor
from dflash_audit.tree import Module, Modules, Parameter

ROWS = ((0, 2), (2, 2), (0, 4))
"""The first two of four, the last two, all."""


@pytest.mark.parametrize(
    ("fills", "half_filled"),
    [
        ([(None, [ROWS[0]])], True),
        ([(None, [ROWS[2]])], False),
        ([(None, [ROWS[0], ROWS[1]])], False),
        ([(0, [ROWS[0]]), (1, [ROWS[1]])], False),
        ([(0, [ROWS[0]]), (1, [ROWS[0]])], True),
        # A shard that did not come is missing, which is told as such.
        ([(0, [ROWS[0]])], False),
        ([], False),
        # An engine that runs itself does not tell what its loaders wrote.
        ([(None, [])], False),
    ],
)
@pytest.mark.parametrize("defaulted", [False, True])
def test_half_filled(
    fills: list[tuple[int | None, list[tuple[int, int]]]], half_filled: bool, defaulted: bool
) -> None:
    parameter = Parameter("weight", (4,), "float32", defaulted=defaulted)
    module = Module("mlp.gate_up_proj", "MergedColumnParallelLinear", (parameter,))
    slot = Slot("mlp.gate_up_proj.weight", module, parameter, 4)
    plan = LoadPlan({slot.name: slot}, Modules({module.name: module}), ())
    for number, (shard, rows) in enumerate(fills):
        copies = tuple(Copy((part,), (part,)) for part in rows)
        plan.fill(Tensor(str(number), "F32", (4,), "file"), Fill(slot, shard, "float32", copies))
    assert plan.half_filled() == ([slot] if half_filled and not defaulted else [])
