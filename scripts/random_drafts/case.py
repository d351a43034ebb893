"""A case in the making, and what its families, quantizers and faults share."""

import random
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


Spec = tuple[str, list[int]]
"""A tensor: dtype, shape."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes from which a draft's tensors are laid out."""

    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    layers: int
    vocab: int
    taps: int


@dataclass(slots=True)
class Case:
    """A case in the making."""

    rng: random.Random
    sizes: Sizes
    config: Json
    tensors: dict[str, Spec]
    files: dict[str, Any] = field(default_factory=dict)
    options: list[str] = field(default_factory=list)
    shards: dict[str, list[str]] = field(default_factory=dict)
    """Weight file -> the tensors that it holds; empty for one file with all of them."""

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def pick(self, *values: Any) -> Any:
        return self.rng.choice(values)

    @property
    def dflash(self) -> Json:
        inner = self.config.get("dflash_config")
        return inner if isinstance(inner, dict) else {}

    @property
    def declared(self) -> Any:
        """The quantization config of config.json under either of its keys, None without one."""
        return self.config.get("quantization_config") or self.config.get("compression_config")

    def setting(self, key: str) -> Any:
        """A value of `dflash_config`, or of the config where it is not in there."""
        return self.dflash.get(key, self.config.get(key))

    def dense(self, shapes: Mapping[str, Iterable[int]], dtype: str = "BF16") -> None:
        self.tensors.update({name: (dtype, list(shape)) for name, shape in shapes.items()})

    def rename(self, pattern: str, replacement: str) -> None:
        """Rename every tensor that `pattern` matches at its start."""
        self.tensors = {re.sub("^" + pattern, replacement, name): spec for name, spec in self.tensors.items()}


def fuse(case: Case, fused: str, parts: tuple[str, ...]) -> None:
    """Store the parts of a fused module as one, as some exporters do."""
    for name in [name for name in case.tensors if f".{parts[0]}." in name]:
        names = [name.replace(parts[0], part) for part in parts]
        if not all(other in case.tensors for other in names):
            continue
        specs = [case.tensors.pop(other) for other in names]
        case.tensors[name.replace(parts[0], fused)] = (
            specs[0][0],
            _joined(name, [shape for _, shape in specs]),
        )


def _joined(name: str, shapes: list[list[int]]) -> list[int]:
    first, leaf = shapes[0], name.rpartition(".")[2]
    axis = 1 if leaf in ("qweight", "qzeros", "scales") else 0
    if len(first) <= axis or leaf.endswith(("g_idx", "weight_shape")):
        return first
    return [*first[:axis], sum(shape[axis] for shape in shapes if len(shape) > axis), *first[axis + 1 :]]
