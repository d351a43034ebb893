"""How far a draft is from the one that it was made from: its unpacked weights, and what it computes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import torch

from dflash_audit.loadplan import Shard
from dflash_audit.tree import FUSED, Module
from dflash_audit.warmup.drift import drift
from dflash_audit.warmup.reference import Outputs
from dflash_audit.warmup.result import Drift, Fidelity
from dflash_audit.warmup.stored_form import stored_form
from dflash_audit.warmup.watch import Watch
from dflash_audit.warmup.weights import Weights

HIDDEN: Final = ("context", "layer ", "norm")
"""How the stages begin whose outputs are hidden states."""

NORMS: Final = ("RMSNorm", "GemmaRMSNorm")


@dataclass(frozen=True, slots=True)
class Passed:
    """A draft's weights, and its forward pass as a watch that keeps outputs saw it."""

    weights: Weights
    watch: Watch
    outputs: Outputs


def fidelity(own: Passed, other: Passed, against: str) -> Fidelity:
    """Hold a draft against another of the same forward pass, after both ran on the same inputs.

    Args:
        against: what the other one is called.
    """
    modules = own.weights.modules.values()
    alike = [module for module in modules if module.linear and other.weights.has_linear(module.name)]
    first, common = _agreement(own.outputs.candidate_ids, other.outputs.candidate_ids)
    return Fidelity(
        against=against,
        drifts=tuple(d for module in alike for d in _drifts(module, own.weights, other.weights)),
        cosines=tuple(
            (stage, *_cosine(ours, other.watch.kept[stage]))
            for stage, ours in own.watch.kept.items()
            if stage.startswith(HIDDEN)
        ),
        first=first,
        common=common,
        rescaled=any(
            not torch.equal(_norm(own.weights, module), _norm(other.weights, module))
            for module in modules
            if module.module_class in NORMS
        ),
    )


def _norm(weights: Weights, module: Module) -> torch.Tensor:
    return weights.parameter(f"{module.name}.weight")


def _drifts(module: Module, own: Weights, other: Weights) -> Iterator[Drift]:
    """Compare one linear of both drafts, each of its fused matrices for itself.

    A matrix that is all zeros in `other`, or not finite in one of them, is passed over.
    """
    ours, theirs = own.linear(module.name).weight, other.linear(module.name).weight
    form = stored_form(module)
    for name, start, rows in _matrices(module):
        found = drift(name, form, ours[start : start + rows], theirs[start : start + rows])
        if found is not None:
            yield found


def _matrices(module: Module) -> Iterator[tuple[str, int, int]]:
    """(name, first row, rows) of each matrix fused in a linear of one rank."""
    linear = module.linear
    assert linear is not None
    shards: tuple[Shard, ...] = tuple(FUSED.get(module.name.rpartition(".")[2], {}).values())
    start = 0
    for index, rows in enumerate(linear.output_partition_sizes):
        name = f"{module.name}[{shards[index]}]" if len(linear.output_partition_sizes) > 1 else module.name
        yield name, start, rows
        start += rows


def _cosine(ours: torch.Tensor, theirs: torch.Tensor) -> tuple[float, float]:
    """Mean and least cosine of the last axis' vectors of two tensors of one shape."""
    found = torch.nn.functional.cosine_similarity(ours.float(), theirs.float(), dim=-1)
    return float(found.mean()), float(found.min())


def _agreement(ours: torch.Tensor, theirs: torch.Tensor) -> tuple[float, float] | tuple[None, None]:
    """Of candidate ids [..., k], best first: how often the first agree, and the share of common ids."""
    if not ours.numel():
        return None, None
    first = (ours[..., 0] == theirs[..., 0]).float().mean()
    common = (ours.unsqueeze(-1) == theirs.unsqueeze(-2)).any(-1).float().mean()
    return float(first), float(common)
