"""What the parent gives the child to do, pickled. Imports no torch."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dflash_audit.loadplan import LoadPlan
from dflash_audit.tree import Tree


@dataclass(frozen=True, slots=True)
class Job:
    """One engine's draft: what is built, what fills it, how it computes, and where to run it.

    `forward` is what the engine's draft computes, a `dflash_audit.forward.Forward`.
    `folder` holds the weight files that the plan's tensors name. `device`,
    `backend` and the rest are as in `Options`, `auto` included. `quantization` and
    `attention_backend` are the server's, as in `Conditions`. `provoke` is the
    run with an id out of range and nothing that keeps it from indexing. `against` is
    another draft of the same forward pass to hold this one against; `name` is what a
    report calls a draft.
    """

    name: str
    engine: str
    model_class: str
    tree: Tree
    plan: LoadPlan
    forward: Any
    folder: Path
    device: str
    dtype: str
    backend: str
    blocks: int
    context: int
    seed: int
    quantization: str | None = None
    attention_backend: str | None = None
    provoke: bool = False
    against: "Job | None" = None
