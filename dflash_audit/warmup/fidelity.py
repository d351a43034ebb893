"""How far a draft is from the one that it was made from: its unpacked weights, and what it computes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import torch

from dflash_audit.forward import Forward
from dflash_audit.tree import FUSED, Module
from dflash_audit.warmup.drift import drift
from dflash_audit.warmup.reference import Inputs, Outputs, run
from dflash_audit.warmup.result import Cosine, Drift, Fidelity, layer_of
from dflash_audit.warmup.roughened import Roughened, level
from dflash_audit.warmup.stored_form import stored_form
from dflash_audit.warmup.watch import Watch
from dflash_audit.warmup.weights import Weights

HIDDEN: Final = ("context", "layer ", "norm")
"""How the stages begin whose outputs are hidden states."""

NORMS: Final = (".input_layernorm", ".post_attention_layernorm")
"""The norms that linears come after, into which a recipe may move their scales."""

ANOTHER: Final = 0.01
"""The relative distance from which a norm is another: a cast to bfloat16 moves it by less than 0.002."""

NOISE_SEED: Final = 2**61 - 1
"""Not one that inputs are drawn from: the noise would be the inputs themselves."""


@dataclass(frozen=True, slots=True)
class Passed:
    """A draft's weights, and its forward pass as a watch that keeps outputs saw it."""

    weights: Weights
    watch: Watch
    outputs: Outputs


def fidelity(own: Passed, other: Passed, forward: Forward, inputs: Inputs, against: str) -> Fidelity:
    """Hold a draft against another of the same forward pass, after both ran on the same inputs.

    The other one is run once more, with random errors as large as rounding explains.

    Args:
        against: what the other one is called.
    """
    modules = own.weights.modules.values()
    rescaled = tuple(
        layer_of(module.name)
        for module in modules
        if module.name.endswith(NORMS) and _is_another(module, own.weights, other.weights)
    )
    drifts: list[Drift] = []
    levels: dict[str, float] = {}
    for module in modules:
        if module.linear and other.weights.has_linear(module.name):
            found, rounds_input = _compared(module, own.weights, other.weights)
            drifts += found
            levels[module.name] = level(found, layer_of(module.name) in rescaled, rounds_input)
    rounded = Watch(keep=True)
    generator = torch.Generator().manual_seed(NOISE_SEED)
    usual = run(forward, Roughened(other.weights, levels, generator), inputs, rounded)
    first, common = _agreement(own.outputs.candidate_ids, other.outputs.candidate_ids)
    _, common_rounding = _agreement(usual.candidate_ids, other.outputs.candidate_ids)
    return Fidelity(
        against=against,
        drifts=tuple(drifts),
        cosines=tuple(
            _cosine(stage, ours, other.watch.kept[stage], rounded.kept[stage])
            for stage, ours in own.watch.kept.items()
            if stage.startswith(HIDDEN)
        ),
        first=first,
        common=common,
        common_rounding=common_rounding,
        rescaled=tuple(dict.fromkeys(rescaled)),
    )


def _is_another(norm: Module, own: Weights, other: Weights) -> bool:
    ours, theirs = (weights.parameter(f"{norm.name}.weight").float() for weights in (own, other))
    return bool((ours - theirs).norm() > ANOTHER * theirs.norm())


def _compared(module: Module, own: Weights, other: Weights) -> tuple[list[Drift], bool]:
    """The drifts of a linear's fused matrices, each for itself, and whether it rounds its inputs.

    A matrix that is all zeros in `other`, or not finite in one of them, is passed over.
    """
    linear = own.linear(module.name)
    ours, theirs = linear.weight, other.linear(module.name).weight
    form = stored_form(module)
    found = (
        drift(name, form, ours[start : start + rows], theirs[start : start + rows])
        for name, start, rows in _matrices(module)
    )
    return [each for each in found if each is not None], linear.round_input is not None


def _matrices(module: Module) -> Iterator[tuple[str, int, int]]:
    """(module on disk, first row, rows) of each matrix fused in a linear of one rank."""
    linear = module.linear
    assert linear is not None
    above, dot, last = module.name.rpartition(".")
    names = [f"{above}{dot}{shard}" for shard in FUSED.get(last, ())] or [module.name]
    start = 0
    for name, rows in zip(names, linear.output_partition_sizes, strict=True):
        yield name, start, rows
        start += rows


def _cosine(stage: str, ours: torch.Tensor, theirs: torch.Tensor, rounded: torch.Tensor) -> Cosine:
    """Of vectors along the last axis, of three tensors of one shape."""
    found, usual = (
        torch.nn.functional.cosine_similarity(each.float(), theirs.float(), dim=-1)
        for each in (ours, rounded)
    )
    return Cosine(stage, float(found.mean()), float(found.min()), float(usual.mean()))


def _agreement(ours: torch.Tensor, theirs: torch.Tensor) -> tuple[float, float] | tuple[None, None]:
    """Of candidate ids [..., k], best first: how often the first agree, and the share of common ids."""
    if not ours.numel():
        return None, None
    first = (ours[..., 0] == theirs[..., 0]).float().mean()
    common = (ours.unsqueeze(-1) == theirs.unsqueeze(-2)).any(-1).float().mean()
    return float(first), float(common)
