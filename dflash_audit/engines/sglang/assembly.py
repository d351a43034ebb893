"""The building blocks of a draft, as SGLang's and torch's constructors register them.

Source: SGLang 0.5.23 `srt/layers/linear.py`, `srt/layers/layernorm.py`,
`srt/layers/vocab_parallel_embedding.py`, `srt/layers/radix_attention.py`.
"""

import math
from typing import Final, NamedTuple

from dflash_audit.quantization.config import QuantConfig
from dflash_audit.quantization.unquantized import dense_linear
from dflash_audit.refusal import Refused
from dflash_audit.torch_numbers import LARGEST
from dflash_audit.tree import Kind, Linear, Module, Parameter, Placement, Tree

MODEL_DTYPE: Final = "bfloat16"
VOCABULARY_PADDING: Final = 64
"""Source: SGLang 0.5.23 `srt/layers/vocab_parallel_embedding.py`, `DEFAULT_VOCAB_PADDING_SIZE`."""


class Assembly(NamedTuple):
    """A tree under construction: each method adds one module, as its constructor would.

    `quant` is the draft's quantization config, `tp` the number of ranks,
    `capability` the card's compute capability times ten; without
    `kv_cache_scales` an attention is not asked about. Sizes are those of
    rank 0. Every method raises `Refused` where a constructor raises.
    """

    quant: QuantConfig | None
    tp: int
    capability: int
    tree: Tree
    kv_cache_scales: bool

    def container(self, name: str, module_class: str, *parameters: Parameter) -> None:
        """A module with only parameters of its own, or none."""
        self._add(Module(name, module_class, parameters))

    def norm(self, name: str, size: int, gemma: bool = False) -> None:
        """`RMSNorm`, or `GemmaRMSNorm`."""
        placement = Placement(Kind.EXACT) if gemma else Placement()
        weight = Parameter("weight", (size,), MODEL_DTYPE, placement)
        self._add(Module(name, "GemmaRMSNorm" if gemma else "RMSNorm", (weight,)))

    def dense(self, name: str, inputs: int, outputs: int, bias: bool) -> None:
        """`torch.nn.Linear`, which no quantization reaches."""
        parameters = [Parameter("weight", (outputs, inputs), MODEL_DTYPE)]
        if bias:
            parameters.append(Parameter("bias", (outputs,), MODEL_DTYPE))
        self._add(Module(name, "Linear", tuple(parameters)))

    def replicated(
        self, name: str, inputs: int, outputs: int, bias: bool, prefix: str, quantized: bool = True
    ) -> None:
        """`ReplicatedLinear`: whole on every rank."""
        layer = Linear("ReplicatedLinear", prefix, inputs, (outputs,), inputs, (outputs,))
        self._linear(name, layer, bias, quantized)

    def column(self, name: str, inputs: int, outputs: int, prefix: str) -> None:
        """`ColumnParallelLinear` without a bias."""
        part = self._divide(outputs)
        self._linear(name, Linear("ColumnParallelLinear", prefix, inputs, (outputs,), inputs, (part,)), False)

    def merged_column(self, name: str, inputs: int, outputs: tuple[int, ...], prefix: str) -> None:
        """`MergedColumnParallelLinear` without a bias."""
        parts = tuple(self._divide(size) for size in outputs)
        self._linear(
            name, Linear("MergedColumnParallelLinear", prefix, inputs, outputs, inputs, parts), False
        )

    def row(self, name: str, inputs: int, outputs: int, bias: bool, prefix: str) -> None:
        """`RowParallelLinear`."""
        part = self._divide(inputs)
        self._linear(name, Linear("RowParallelLinear", prefix, inputs, (outputs,), part, (outputs,)), bias)

    def qkv(
        self, name: str, inputs: int, head_dim: int, heads: int, kv_heads: int, bias: bool, prefix: str
    ) -> None:
        """`QKVParallelLinear`: query heads split over the ranks, key and value heads split or repeated."""
        q, kv = self._divide(heads) * head_dim, max(1, kv_heads // self.tp) * head_dim
        whole = (q * self.tp, kv * self.tp, kv * self.tp)
        replicas = max(1, self.tp // kv_heads)
        layer = Linear("QKVParallelLinear", prefix, inputs, whole, inputs, (q, kv, kv), replicas)
        self._linear(name, layer, bias)

    def attention(self, name: str) -> None:
        """`RadixAttention`, which asks about itself under an empty name."""
        quant = self.quant if self.kv_cache_scales else None
        scheme = quant.attention() if quant else None
        parameters = scheme.parameters if scheme else ()
        self._add(Module(name, "RadixAttention", parameters, "" if quant else None, scheme))

    def vocabulary(self, name: str, tokens: int, size: int, prefix: str) -> None:
        """`VocabParallelEmbedding`: rows padded, then split over the ranks."""
        scheme = self.quant.embedding(prefix) if self.quant else None
        if scheme is not None:
            raise Refused(f"{scheme.name} cannot serve an embedding ({prefix})")
        padding = VOCABULARY_PADDING
        if _padded(tokens, padding) % self.tp:
            padding *= self.tp
        rows = _padded(tokens, padding) // self.tp
        placement = Placement(Kind.VOCABULARY, output_dim=0, input_dim=1, tokens=tokens)
        weight = Parameter("weight", (rows, size), MODEL_DTYPE, placement)
        self._add(Module(name, "VocabParallelEmbedding", (weight,), prefix if self.quant else None))

    def _linear(self, name: str, layer: Linear, bias: bool, quantized: bool = True) -> None:
        quant = self.quant if quantized else None
        scheme = quant.linear(layer) if quant else dense_linear(layer)
        parameters = scheme.parameters
        if bias:
            placement = Placement(output_dim=0)
            own = Parameter("bias", (layer.output_size_per_partition,), MODEL_DTYPE, placement)
            parameters = (*parameters, own)
        self._add(
            Module(name, layer.module_class, parameters, layer.prefix if quant else None, scheme, layer)
        )

    def _divide(self, size: int) -> int:
        if size % self.tp:
            raise Refused(f"{size} is not divisible by {self.tp} ranks")
        return size // self.tp

    def _add(self, module: Module) -> None:
        for parameter in module.parameters:
            if any(size < 0 for size in parameter.shape):
                raise Refused(f"{module.name}.{parameter.name} would have the shape {list(parameter.shape)}")
            if math.prod(parameter.shape) >= LARGEST:
                raise Refused(f"{module.name}.{parameter.name} would hold more numbers than torch can count")
        self.tree.add(module)


def _padded(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple
