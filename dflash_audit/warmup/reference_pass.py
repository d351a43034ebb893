"""A warm-up on the reference backend: the poisoned forward pass, and where its poison comes from."""

from collections.abc import Iterator
from dataclasses import replace

import torch

from dflash_audit.errors import Unreadable
from dflash_audit.warmup.events import AGAINST, Teller
from dflash_audit.warmup.fidelity import Passed, fidelity
from dflash_audit.warmup.job import Job
from dflash_audit.warmup.memory import Memory
from dflash_audit.warmup.reached import reached_outputs
from dflash_audit.warmup.reference import Inputs, random_inputs, run
from dflash_audit.warmup.result import Fidelity, Source, WarmUp
from dflash_audit.warmup.unpack import import_unpackers
from dflash_audit.warmup.watch import Watch
from dflash_audit.warmup.weights import Weights, is_finite
from dflash_audit.warmup.yardstick import NO_YARDSTICK


def reference_pass(job: Job, device: torch.device, tell: Teller) -> WarmUp:
    """Run the job's draft forward in plain PyTorch.

    Where non-finite numbers reach an output it is run once more, to find every
    module that makes some out of finite ones. With `job.provoke` the blocks start
    with an id out of range, which nothing keeps from indexing. What holds non-finite
    numbers is not held against anything.

    Raises:
        Unreadable: a weight file is another than the audit saw, or the draft to hold this
            one against gives non-finite numbers.
        Refused: the engine refuses what the parameters hold.
    """
    weights = _weights(job, device)
    inputs = random_inputs(job.forward, job.seed, job.blocks, job.context, getattr(torch, job.dtype), device)
    if job.provoke:
        inputs = replace(inputs, anchors=torch.full_like(inputs.anchors, inputs.embedding.shape[0]))
    watch = Watch(tell, keep=job.against is not None)
    with watch.stage("imports"):
        import_unpackers(job.tree.modules.values())
    outputs = run(job.forward, weights, inputs, watch, guard=not job.provoke)
    reached = reached_outputs(watch.stages)
    passed = Passed(weights, watch, outputs)
    return WarmUp(
        job.engine,
        "reference",
        str(device),
        job.dtype,
        stages=tuple(watch.stages),
        reached=reached,
        sources=_sources(job, weights, inputs, tell) if reached else (),
        out_of_range=outputs.out_of_range,
        fidelity=_fidelity(job.against, passed, inputs, tell) if job.against and not reached else None,
    )


def _weights(job: Job, device: torch.device) -> Weights:
    return Weights(job.tree.modules, Memory(job.plan, job.folder, str(device)))


def _sources(job: Job, weights: Weights, inputs: Inputs, tell: Teller) -> tuple[Source, ...]:
    watch = Watch(tell, mend=True)
    run(job.forward, weights, inputs, watch)
    return tuple(
        Source(module, stage, tuple(weights.unfilled(module)), tuple(_broken(weights, module)))
        for module, stage in watch.sources.items()
    )


def _broken(weights: Weights, module: str) -> Iterator[str]:
    """The tensors on disk that fill a module with NaN or infinity; a parameter that a cast made so."""
    for parameter in weights.broken(module):
        stored = [name for name, numbers in weights.memory.sources(parameter) if not is_finite(numbers)]
        yield from stored or [parameter]


def _fidelity(against: Job, own: Passed, inputs: Inputs, tell: Teller) -> Fidelity:
    weights, watch = _weights(against, inputs.features.device), Watch(keep=True)
    tell(AGAINST)
    outputs = run(against.forward, weights, inputs, watch)
    if reached := reached_outputs(watch.stages):
        told = f"NaN or infinities in {', '.join(reached)}, so nothing can be held against it"
        raise Unreadable(NO_YARDSTICK, against.name, told)
    return fidelity(own, Passed(weights, watch, outputs), against.forward, inputs, against.name)
