"""A draft of random weights from its config alone, under the names of the engine's tree."""

import json
import math
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from dflash_audit.engine_run import Conditions
from dflash_audit.engines.sglang.architectures import draft_class
from dflash_audit.engines.sglang.draft import build
from dflash_audit.engines.sglang.forward import forward_of
from dflash_audit.engines.sglang.model_config import derive
from dflash_audit.engines.sglang.profile import NEXT
from dflash_audit.forward import Forward
from dflash_audit.hf_config import as_engine_sees
from dflash_audit.tree import FUSED, Tree
from dflash_audit.warmup.linear import DenseLinear

FIXTURES = Path(__file__).parents[2] / "fixtures"

Config = dict[str, Any]


def config_of(folder: Path) -> Config:
    config: Config = json.loads((folder / "config.json").read_text())
    return config


@dataclass
class Draft:
    """A dense draft: its forward pass, its tree, and its weights by full parameter name."""

    forward: Forward
    tree: Tree
    weights: "RandomWeights"


@dataclass
class RandomWeights:
    """What the reference asks for; `read` are the parameters it got, `linears` the layers in order."""

    tensors: dict[str, torch.Tensor]
    read: set[str] = field(default_factory=set)
    linears: list[str] = field(default_factory=list)

    def parameter(self, full_name: str) -> torch.Tensor:
        self.read.add(full_name)
        return self.tensors[full_name]

    def linear(self, module_name: str) -> DenseLinear:
        self.linears.append(module_name)
        bias = f"{module_name}.bias"
        has_bias = bias in self.tensors
        return DenseLinear(
            self.parameter(f"{module_name}.weight"), self.parameter(bias) if has_bias else None
        )


def draft_of(config: Config) -> Draft:
    """Build the dense draft of a config; `quantization_config` decides its kind and not its weights."""
    seen = derive(as_engine_sees(config))
    drafted = draft_class(seen)
    tree = build(drafted, NEXT, seen, None, Conditions()).tree
    tensors = {name: random_weight(name, parameter.shape) for name, _, parameter in tree.parameters()}
    return Draft(forward_of(seen, drafted.name), tree, RandomWeights(tensors))


def random_weight(name: str, shape: tuple[int, ...]) -> torch.Tensor:
    """Numbers of a trained weight's size, from its name, rounded to bfloat16 so that dtypes agree on them."""
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    numbers = torch.randn(shape, generator=generator)
    if "norm" in name and name.endswith("weight"):
        numbers = 1 + 0.2 * numbers
    elif len(shape) == 2:
        numbers = numbers / math.sqrt(shape[1])
    else:
        numbers = 0.3 * numbers
    return numbers.bfloat16().float()


def cosine(ours: torch.Tensor, theirs: torch.Tensor) -> float:
    """The mean cosine of the vectors in the last dimension."""
    return float(torch.cosine_similarity(ours.double(), theirs.double(), dim=-1).mean())


def split(tree: Tree, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The tensors as a checkpoint names them: fused layers' parameters apart."""
    parts = {}
    for full_name, module, parameter in tree.parameters():
        stem, _, last = module.name.rpartition(".")
        if module.linear is None or last not in FUSED:
            parts[full_name] = tensors[full_name]
            continue
        shards = tensors[full_name].split(module.linear.output_sizes)
        names = (f"{stem}.{shard}.{parameter.name}" for shard in FUSED[last])
        parts |= dict(zip(names, shards, strict=True))
    return parts


def fuse(tree: Tree, parts: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The reverse of `split`."""
    tensors = {}
    for full_name, module, parameter in tree.parameters():
        stem, _, last = module.name.rpartition(".")
        names = [f"{stem}.{shard}.{parameter.name}" for shard in FUSED.get(last, ())]
        tensors[full_name] = torch.cat([parts[name] for name in names]) if names else parts[full_name]
    return tensors
