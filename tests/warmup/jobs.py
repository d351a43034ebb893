"""Jobs for the children of these tests."""

from functools import partial
from pathlib import Path

from dflash_audit.loadplan import LoadPlan
from dflash_audit.tree import Modules, Tree
from dflash_audit.warmup import isolation
from dflash_audit.warmup.job import Job

CHILD = "warmup.children"

warm_up = partial(isolation.warm_up, module=CHILD)


def job(what: str, stage: str = "hidden") -> Job:
    """A job for `children`: do `what` in `stage`."""
    return Job(
        name="a draft",
        engine="an-engine",
        model_class=stage,
        tree=Tree(),
        plan=LoadPlan({}, Modules(), ()),
        forward=what,
        folder=Path("nowhere"),
        device="auto",
        dtype="bfloat16",
        backend="auto",
        blocks=1,
        context=8,
        seed=0,
    )
