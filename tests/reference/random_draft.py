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
from dflash_audit.tree import Tree
from dflash_audit.warmup.linear import DenseLinear

FIXTURES = Path(__file__).parents[2] / "fixtures"


def config_of(folder: Path) -> dict[str, Any]:
    config: dict[str, Any] = json.loads((folder / "config.json").read_text())
    return config


@dataclass
class Draft:
    """A dense draft: its forward pass, its tree, and its weights by full parameter name."""

    forward: Forward
    tree: Tree
    weights: "RandomWeights"


@dataclass
class RandomWeights:
    """Fills what the reference asks for; `asked` are the names, in order."""

    tensors: dict[str, torch.Tensor]
    asked: list[str] = field(default_factory=list)

    def parameter(self, full_name: str) -> torch.Tensor:
        self.asked.append(full_name)
        return self.tensors[full_name]

    def linear(self, module_name: str) -> DenseLinear:
        self.asked.append(f"{module_name}.weight")
        return DenseLinear(self.tensors[f"{module_name}.weight"], self.tensors.get(f"{module_name}.bias"))


def draft_of(config: dict[str, Any], dtype: torch.dtype = torch.float32) -> Draft:
    """Build the dense draft of a config; `quantization_config` decides its kind and not its weights."""
    seen = derive(as_engine_sees(config))
    drafted = draft_class(seen)
    tree = build(drafted, NEXT, seen, None, Conditions()).tree
    tensors = {
        name: random_weight(name, parameter.shape).to(dtype) for name, _, parameter in tree.parameters()
    }
    return Draft(forward_of(seen, drafted.name), tree, RandomWeights(tensors))


def random_weight(name: str, shape: tuple[int, ...]) -> torch.Tensor:
    """Numbers of a trained weight's size, from its name; rounded to bfloat16, so that all dtypes agree on them."""
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    numbers = torch.randn(shape, generator=generator)
    if "norm" in name and name.endswith("weight"):
        numbers = 1 + 0.2 * numbers
    elif len(shape) == 2:
        numbers = numbers / math.sqrt(shape[1])
    else:
        numbers = 0.3 * numbers
    return numbers.bfloat16().float()
