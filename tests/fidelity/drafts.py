"""Dense drafts to quantize, and a comparison of two drafts in this process."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from fidelity.quantize import QUANTIZED, write_dense
from reference.families import CONVOLUTION, SELECTOR, draft
from reference.random_draft import draft_of, split

from dflash_audit.engine_run import Conditions
from dflash_audit.engines import engine
from dflash_audit.sources.disk import read_path
from dflash_audit.warmup.job import Job
from dflash_audit.warmup.reference_pass import reference_pass
from dflash_audit.warmup.result import WarmUp

Spread = Callable[[torch.Tensor, torch.Generator], torch.Tensor]


def plain(weight: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """The weight as it is: normal."""
    del generator
    return weight


def outliers(weight: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Ten times as large in three rows and three columns."""
    changed = weight.clone()
    changed[torch.randperm(weight.shape[0], generator=generator)[:3]] *= 10
    changed[:, torch.randperm(weight.shape[1], generator=generator)[:3]] *= 10
    return changed


def heavy(weight: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """A distribution with heavy tails: Student's t of three degrees of freedom."""
    chi = torch.randn((3, *weight.shape), generator=generator).square().mean(0).sqrt()
    return weight / chi


def uneven(weight: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Rows of very different magnitudes, a factor of e**0.7 apart as a rule."""
    return weight * (0.7 * torch.randn((weight.shape[0], 1), generator=generator)).exp()


SPREADS: Mapping[str, Spread] = {"normal": plain, "outliers": outliers, "heavy": heavy, "uneven": uneven}


def config(hidden: int, layers: int) -> dict[str, Any]:
    """A DFlash2 draft of that size."""
    return draft(
        "DFlash2DraftModel",
        {**SELECTOR, **CONVOLUTION, "block_size": 8, "mask_token_id": 4000},
        head_dim=64,
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_attention_heads=hidden // 64,
        num_key_value_heads=hidden // 128,
        num_hidden_layers=layers,
        vocab_size=4096,
    )


def write_draft(folder: Path, hidden: int, layers: int, spread: str) -> Path:
    """A dense draft of random weights; those of its large linears as `spread` says."""
    made = draft_of(config(hidden, layers))
    generator = torch.Generator().manual_seed(5)
    tensors = {
        name: SPREADS[spread](value, generator) if QUANTIZED.fullmatch(name) else calm(name, value)
        for name, value in split(made.tree, made.weights.tensors).items()
    }
    return write_dense(folder, config(hidden, layers), tensors)


def calm(name: str, weight: torch.Tensor) -> torch.Tensor:
    """A convolution that passes on each token nearly as it is, as a trained one; any other weight itself."""
    if name.endswith("kernel_projection.weight"):
        return weight * 0.1
    if name.endswith("base_kernel"):
        weight = weight * 0.1
        weight[:, 0] += 1
    return weight


def job(folder: Path, blocks: int = 4) -> Job:
    """The draft of a folder, as `sglang-next` builds it, on a CPU in bfloat16."""
    run = engine("sglang-next").replay(read_path(folder), Conditions())
    assert run.refusal is None and run.skipped is None, run.refusal or run.skipped
    assert run.model_class and run.tree and run.plan
    return Job(
        name=folder.name,
        engine=run.engine,
        model_class=run.model_class,
        tree=run.tree,
        plan=run.plan,
        forward=engine("sglang-next").forward(run),
        folder=folder,
        device="cpu",
        dtype="bfloat16",
        backend="reference",
        blocks=blocks,
        context=64,
        seed=0,
    )


def compare(folder: Path, against: Path) -> WarmUp:
    """The warm-up of a draft that is held against another."""
    held = replace(job(folder), against=job(against))
    return reference_pass(held, torch.device("cpu"), lambda stage: None)  # type: ignore[arg-type]
