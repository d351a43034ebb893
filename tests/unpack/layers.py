"""Modules as the builder of a draft makes them, and what an unpacker reads of one."""

from collections.abc import Iterator, Mapping
from typing import Any

from dflash_audit.quantization import reader
from dflash_audit.quantization.config import Surroundings
from dflash_audit.tree import Linear, Module, Parameter


class Stored(Mapping[str, Any]):
    """What a module's parameters hold, and in `read` which of them were asked for."""

    def __init__(self, tensors: Mapping[str, Any]) -> None:
        self.tensors = tensors
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.read.add(name)
        return self.tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)


def quantized(
    method: str,
    config: Mapping[str, Any],
    module_class: str = "ReplicatedLinear",
    outputs: tuple[int, ...] = (128,),
    inputs: int = 256,
    bias: bool = False,
    capability: int = 90,
    ranks: int = 1,
) -> Module:
    """A linear called `layer` under a quantization config; `inputs` are those of one of its `ranks`."""
    surroundings = Surroundings(packed_modules_mapping={}, capability=capability, draft={})
    layer = Linear(module_class, "layer", inputs * ranks, outputs, inputs, outputs)
    scheme = reader(method)(config, surroundings).linear(layer)
    own = (Parameter("bias", (sum(outputs),), "bfloat16"),) if bias else ()
    return Module("layer", module_class, (*scheme.parameters, *own), "layer", scheme, layer)
