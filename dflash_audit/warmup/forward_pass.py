"""A warm-up in the child: the poisoned forward pass, and where its poison comes from."""

import resource
import sys
from dataclasses import replace
from typing import Final

import torch

from dflash_audit.warmup.events import Teller
from dflash_audit.warmup.fidelity import Passed, fidelity
from dflash_audit.warmup.job import Job
from dflash_audit.warmup.memory import Memory
from dflash_audit.warmup.reference import Inputs, random_inputs, run
from dflash_audit.warmup.result import Fidelity, Source, Stage, WarmUp
from dflash_audit.warmup.watch import Watch
from dflash_audit.warmup.weights import Weights

BACKEND: Final = "reference"
AGAINST: Final = "against"
"""The stage in which another draft is run and compared."""


def warm_up(job: Job, tell: Teller) -> WarmUp:
    """Run the job's draft forward on the reference backend.

    Where non-finite numbers reach an output it is run once more, to find every
    module that makes some out of finite ones. With `job.provoke` the blocks start
    with an id out of range, which nothing keeps from indexing.

    Raises:
        Unreadable: a weight file is another than the audit saw.
        Refused: the engine refuses what the parameters hold.
    """
    device, dtype = _device(job.device), getattr(torch, job.dtype)
    tell.running(BACKEND, str(device))
    weights = _weights(job, device)
    inputs = random_inputs(job.forward, job.seed, job.blocks, job.context, dtype, device)
    if job.provoke:
        beyond = torch.full_like(inputs.anchors, inputs.embedding.shape[0])
        inputs = replace(inputs, anchors=beyond)
    watch = Watch(tell, keep=job.against is not None)
    outputs = run(job.forward, weights, inputs, watch, guard=not job.provoke)
    reached = tuple(stage.name for stage in _outputs(watch.stages) if not stage.finite)
    warm = WarmUp(
        job.engine,
        BACKEND,
        str(device),
        job.dtype,
        stages=tuple(watch.stages),
        reached=reached,
        sources=_sources(job, weights, inputs, tell) if reached else (),
        out_of_range=outputs.out_of_range,
        fidelity=_fidelity(job.against, Passed(weights, watch, outputs), inputs, tell) if job.against else None,
    )
    return replace(warm, peak_bytes=_peak(device))


def _weights(job: Job, device: torch.device) -> Weights:
    return Weights(job.tree.modules, Memory(job.plan, job.folder, str(device)))


def _fidelity(against: Job, own: Passed, inputs: Inputs, tell: Teller) -> Fidelity:
    weights, watch = _weights(against, inputs.features.device), Watch(keep=True)
    tell(AGAINST)
    outputs = run(against.forward, weights, inputs, watch)
    return fidelity(own, Passed(weights, watch, outputs), against.name)


def _device(name: str) -> torch.device:
    """The device of that name; for `auto` the first GPU, or the CPU where there is none."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    device = torch.device(name)
    if device.type == "cuda":
        # So that a card that is not there is told before the first stage, as the machine's fault.
        torch.cuda.set_device(device.index or 0)
        torch.zeros(1, device=device)
    return device


def _outputs(stages: list[Stage]) -> list[Stage]:
    """The stages whose numbers a server uses: the hidden states, and what follows from them."""
    names = [stage.name for stage in stages]
    return stages[names.index("norm") :]


def _sources(job: Job, weights: Weights, inputs: Inputs, tell: Teller) -> tuple[Source, ...]:
    watch = Watch(tell, mend=True)
    run(job.forward, weights, inputs, watch)
    return tuple(
        Source(module, stage, tuple(weights.unfilled(module)), tuple(weights.broken(module)))
        for module, stage in watch.sources.items()
    )


def _peak(device: torch.device) -> int:
    """Most bytes that torch held on a GPU, or that the process held in memory, mapped files among them."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
