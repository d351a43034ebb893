"""What every quantization method of vLLM gives the builder of a draft."""

from typing import NamedTuple, Protocol

from dflash_audit.engines.vllm.quantization.experts import Experts
from dflash_audit.quantization import config
from dflash_audit.sources.checkpoint import Tensor
from dflash_audit.tree import Linear, Scheme


class Surroundings(NamedTuple):
    """What a method may read beside its own config.

    The draft's `num_layers` layers are asked for as `model.layers.{layer + first_layer}`,
    `shifted` where the config's own names are rewritten so. `capability` is the card's
    compute capability times ten, `kv_heads` those of a rank, `tensors` the checkpoint's.
    """

    first_layer: int
    num_layers: int
    shifted: bool
    capability: int
    kv_heads: int
    tensors: tuple[Tensor, ...]


class QuantConfig(config.QuantConfig, Protocol):
    """A quantization config that the engine has accepted; it knows no fused modules of a draft."""

    def experts(self, layer: Experts) -> Scheme:
        """The scheme of a mixture's routed experts."""
        ...

    def head(self, layer: Linear) -> Scheme | None:
        """The scheme of a `ParallelLMHead`, None where it gets the method of an embedding."""
        ...
