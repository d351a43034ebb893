"""A warm-up on the backend sglang: the installed engine's own draft, poisoned, loaded and run by itself."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

import torch

from dflash_audit.errors import Unreadable
from dflash_audit.loadplan import LoadPlan, Shard, part
from dflash_audit.refusal import NotModelled
from dflash_audit.tree import Module
from dflash_audit.warmup.events import Teller
from dflash_audit.warmup.job import Job
from dflash_audit.warmup.memory import REST
from dflash_audit.warmup.reached import reached_outputs
from dflash_audit.warmup.reference import Inputs, Outputs, random_inputs
from dflash_audit.warmup.result import Source, WarmUp
from dflash_audit.warmup.sglang_live.entry import run_live
from dflash_audit.warmup.sglang_live.live_draft import LiveDraft
from dflash_audit.warmup.watch import Watch

DTYPE: Final = "bfloat16"


def sglang_pass(job: Job, device: torch.device, tell: Teller) -> WarmUp:
    """Run the job's draft as the installed SGLang does, twice where non-finite numbers reach an output.

    Raises:
        Unreadable: a dtype that a server does not build drafts in, or a comparison (no-backend).
        NotModelled: a scheme that SGLang runs on a GPU alone.
    """
    if job.dtype != DTYPE:
        raise Unreadable("no-backend", job.engine, f"the backend sglang runs in {DTYPE}, as a server does")
    if job.against is not None:
        raise Unreadable("no-backend", job.engine, "drafts are compared on the backend reference")
    inputs = random_inputs(job.forward, job.seed, job.blocks, job.context, torch.bfloat16, device)
    if job.provoke:
        inputs = replace(inputs, anchors=torch.full_like(inputs.anchors, inputs.embedding.shape[0]))
    watch = Watch(tell)
    outputs = _run(job, inputs, watch)
    reached = reached_outputs(watch.stages)
    return WarmUp(
        job.engine,
        "sglang",
        str(device),
        job.dtype,
        stages=tuple(watch.stages),
        reached=reached,
        sources=_sources(job, inputs, tell) if reached else (),
        out_of_range=outputs.out_of_range,
    )


def _run(job: Job, inputs: Inputs, watch: Watch) -> Outputs:
    rows, first = job.forward.rows, job.forward.first_slot
    draft = LiveDraft(str(job.folder), rows, first, job.quantization, job.attention_backend)
    try:
        return run_live(draft, inputs, watch)
    except NotImplementedError as error:
        raise NotModelled(str(error)) from error


def _sources(job: Job, inputs: Inputs, tell: Teller) -> tuple[Source, ...]:
    """What made non-finite numbers, with the parameters there that the plan leaves unfilled, read or not."""
    watch = Watch(tell, mend=True)
    _run(job, inputs, watch)
    holes = _holes(job.plan)
    return tuple(
        Source(name, stage, tuple(_unfilled(job.tree.modules[name], holes)))
        for name, stage in watch.sources.items()
        if name in job.tree.modules
    )


def _holes(plan: LoadPlan) -> Mapping[str, tuple[Shard, ...]]:
    """Full parameter name -> its shards that nothing fills, REST where a part of a shard is left."""
    return {slot.name: (REST,) for slot in plan.half_filled()} | dict(plan.missing())


def _unfilled(module: Module, holes: Mapping[str, tuple[Shard, ...]]) -> Iterator[str]:
    for parameter in module.parameters:
        name = f"{module.name}.{parameter.name}"
        yield from (part(name, shard) for shard in holes.get(name, ()))
