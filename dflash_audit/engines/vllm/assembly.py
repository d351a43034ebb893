"""The building blocks of a draft, as vLLM's and torch's constructors register them.

Source: vLLM 0.33.0 `model_executor/layers/linear.py`, `layernorm.py`,
`vocab_parallel_embedding.py`, `attention/attention.py`.
"""

from typing import Final, NamedTuple

from dflash_audit.engines.vllm.attention_backends import asked_of, backend
from dflash_audit.engines.vllm.quantization.config import QuantConfig
from dflash_audit.engines.vllm.quantization.dense import dense_linear
from dflash_audit.refusal import Refused
from dflash_audit.tree import Kind, Linear, Module, Parameter, Placement, Scheme, Tree

MODEL_DTYPE: Final = "bfloat16"
VOCABULARY_PADDING: Final = 64
"""Source: vLLM 0.33.0 `vocab_parallel_embedding.py`, `DEFAULT_VOCAB_PADDING_SIZE`."""

HEAD: Final = "ParallelLMHead"


class Assembly(NamedTuple):
    """A tree under construction: each method adds one module, as its constructor would.

    `quant` is the draft's quantization config, `tp` the number of ranks, `capability` the
    card's (times ten); sizes are those of rank 0. A linear is asked for under its `prefix`
    where it is `quantized`.
    Every method raises `Refused` where a constructor raises.
    """

    quant: QuantConfig | None
    tp: int
    capability: int
    tree: Tree

    def container(self, name: str, module_class: str, *parameters: Parameter) -> None:
        """A module with only parameters of its own, or none."""
        self._add(Module(name, module_class, parameters))

    def norm(self, name: str, size: int) -> None:
        """`RMSNorm`."""
        self._add(Module(name, "RMSNorm", (Parameter("weight", (size,), MODEL_DTYPE),)))

    def dense(self, name: str, inputs: int, outputs: int) -> None:
        """`torch.nn.Linear` without a bias, which no quantization reaches."""
        self._add(Module(name, "Linear", (Parameter("weight", (outputs, inputs), MODEL_DTYPE),)))

    def replicated(
        self,
        name: str,
        inputs: int,
        outputs: int,
        prefix: str,
        bias: bool = False,
        quantized: bool = True,
        dtype: str = MODEL_DTYPE,
    ) -> None:
        """`ReplicatedLinear`: whole on every rank; `dtype` is that of one that is not quantized."""
        layer = Linear("ReplicatedLinear", prefix, inputs, (outputs,), inputs, (outputs,))
        self._linear(name, layer, bias, quantized, dtype)

    def column(self, name: str, inputs: int, outputs: int, prefix: str, bias: bool = False) -> None:
        """`ColumnParallelLinear`."""
        part = self.divide(outputs)
        self._linear(name, Linear("ColumnParallelLinear", prefix, inputs, (outputs,), inputs, (part,)), bias)

    def merged_column(
        self, name: str, inputs: int, outputs: tuple[int, ...], prefix: str, quantized: bool = True
    ) -> None:
        """`MergedColumnParallelLinear` without a bias."""
        parts = tuple(self.divide(size) for size in outputs)
        layer = Linear("MergedColumnParallelLinear", prefix, inputs, outputs, inputs, parts)
        self._linear(name, layer, False, quantized)

    def row(
        self, name: str, inputs: int, outputs: int, prefix: str, bias: bool = False, quantized: bool = True
    ) -> None:
        """`RowParallelLinear`."""
        part = self.divide(inputs)
        layer = Linear("RowParallelLinear", prefix, inputs, (outputs,), part, (outputs,))
        self._linear(name, layer, bias, quantized)

    def qkv(
        self,
        name: str,
        inputs: int,
        head_dim: int,
        heads: int,
        kv_heads: int,
        prefix: str,
        bias: bool = False,
        quantized: bool = True,
    ) -> None:
        """`QKVParallelLinear`: query heads split over the ranks, key and value heads split or repeated."""
        own_kv = 1 if self.tp >= kv_heads else self.divide(kv_heads)
        q, kv = self.divide(heads) * head_dim, own_kv * head_dim
        replicas = max(1, self.tp // kv_heads)
        whole = (q * self.tp, kv * self.tp, kv * self.tp)
        layer = Linear("QKVParallelLinear", prefix, inputs, whole, inputs, (q, kv, kv), replicas)
        self._linear(name, layer, bias, quantized)

    def attention(
        self, name: str, prefix: str, head_dim: int, sinks: bool = False, quantized: bool = True
    ) -> None:
        """`Attention`, which holds the scales of a quantized KV cache, on the backend that takes it."""
        quant = self.quant if quantized else None
        backend(self.capability, asked_of(quant, head_dim, sinks))
        scheme = quant.attention() if quant else None
        self._add(Module(name, "Attention", scheme.parameters if scheme else (), None, scheme))

    def embedding(self, name: str, tokens: int, size: int, prefix: str) -> None:
        """`VocabParallelEmbedding`, the target's where the checkpoint has none."""
        self._vocabulary(name, "VocabParallelEmbedding", tokens, size, prefix, shared=True, split=True)

    def head(self, name: str, tokens: int, size: int, prefix: str, quantized: bool, shared: bool) -> None:
        """`ParallelLMHead`; a `shared` one is the target's where the checkpoint has none.

        One of a Markov head is whole on every rank.
        """
        if self.quant is not None and quantized:
            rows = self._rows(tokens, shared)
            layer = Linear(HEAD, prefix, size, (_padded(tokens, VOCABULARY_PADDING),), size, (rows,))
            scheme = self.quant.head(layer)
            if scheme is not None:
                parameters = tuple(_of_vocabulary(each, tokens, shared) for each in scheme.parameters)
                held = Scheme(scheme.name, scheme.loader, parameters, scheme.block_size)
                self._add(Module(name, HEAD, parameters, prefix, held, None))
                return
        self._vocabulary(name, HEAD, tokens, size, prefix, shared, split=shared)

    def _vocabulary(
        self, name: str, module_class: str, tokens: int, size: int, prefix: str, shared: bool, split: bool
    ) -> None:
        placement = Placement(Kind.VOCABULARY, output_dim=0, input_dim=1, tokens=tokens)
        rows = self._rows(tokens, split)
        weight = Parameter("weight", (rows, size), MODEL_DTYPE, placement, defaulted=shared)
        scheme = Scheme("UnquantizedEmbeddingMethod", "v1", (weight,))
        self._add(Module(name, module_class, (weight,), prefix, scheme))

    def _rows(self, tokens: int, split: bool) -> int:
        rows = _padded(tokens, VOCABULARY_PADDING)
        return self.divide(rows) if split else rows

    def _linear(
        self, name: str, layer: Linear, bias: bool, quantized: bool = True, dtype: str = MODEL_DTYPE
    ) -> None:
        quant = self.quant if quantized else None
        scheme = quant.linear(layer) if quant else dense_linear(layer, dtype)
        parameters = scheme.parameters
        if bias:
            own = Parameter("bias", (layer.output_size_per_partition,), dtype, Placement(output_dim=0))
            parameters = (*parameters, own)
        self._add(Module(name, layer.module_class, parameters, layer.prefix, scheme, layer))

    def divide(self, size: int) -> int:
        """A size over the ranks; refused where they do not divide it."""
        if size % self.tp:
            raise Refused(f"{size} is not divisible by {self.tp} ranks")
        return size // self.tp

    def _add(self, module: Module) -> None:
        for parameter in module.parameters:
            if any(size < 0 for size in parameter.shape):
                raise Refused(f"{module.name}.{parameter.name} would have the shape {list(parameter.shape)}")
        self.tree.add(module)


def _of_vocabulary(parameter: Parameter, tokens: int, shared: bool) -> Parameter:
    """A parameter of a quantized head, which a row for each token fills."""
    at = parameter.placement
    kind = Kind.EXACT if at.output_dim is None else Kind.VOCABULARY
    placement = Placement(kind, at.output_dim, at.input_dim, at.packed_dim, at.packed_factor, tokens=tokens)
    return parameter._replace(placement=placement, defaulted=shared or parameter.defaulted)


def _padded(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple
