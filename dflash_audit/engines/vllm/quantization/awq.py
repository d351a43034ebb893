"""AWQ checkpoints.

Source: vLLM 0.33.0 `model_executor/layers/quantization/auto_awq.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dflash_audit.engines.vllm.quantization import packed
from dflash_audit.engines.vllm.quantization.config import QuantConfig, Surroundings
from dflash_audit.engines.vllm.quantization.dense import dense_linear
from dflash_audit.engines.vllm.quantization.experts import Experts, dense_experts
from dflash_audit.engines.vllm.quantization.inferred import dense_modules
from dflash_audit.quantization.keys import optional, required
from dflash_audit.refusal import Refused
from dflash_audit.tree import Linear, Scheme


@dataclass(frozen=True, slots=True)
class Awq:
    """An `AutoAWQConfig`; `kept` are the parts of names that stay dense, `written` those of the config."""

    bits: int
    group_size: int
    zero_point: Any
    head_quantized: Any
    kept: tuple[str, ...]
    written: tuple[str, ...]

    @property
    def left_dense(self) -> tuple[str, ...]:
        return self.written

    def names_looked_up(self, prefix: str) -> tuple[str, ...]:
        return (prefix,)

    def leaves_dense(self, entry: str, name: str) -> bool:
        return entry in name

    def linear(self, layer: Linear) -> Scheme:
        if any(part in layer.prefix for part in self.kept):
            return dense_linear(layer)
        return packed.awq(layer, self.bits, self.group_size, self.zero_point)

    def experts(self, layer: Experts) -> Scheme:
        if any(part in layer.prefix for part in self.kept):
            return dense_experts(layer)
        return packed.awq_experts(layer, self.bits, self.group_size, bool(self.zero_point))

    def head(self, layer: Linear) -> Scheme | None:
        return self.linear(layer) if self.head_quantized else None

    def attention(self) -> Scheme | None:
        return None

    def embedding(self, prefix: str) -> Scheme | None:
        return None


def read(config: Mapping[str, Any], surroundings: Surroundings) -> QuantConfig:
    """`AutoAWQConfig.from_config`, and the modules that the checkpoint's dtypes tell where it names none."""
    bits = packed.whole(required(config, "w_bit", "bits"), "bits")
    group_size = packed.whole(required(config, "q_group_size", "group_size"), "group_size")
    zero_point = required(config, "zero_point")
    if bits != 4:
        raise Refused(f"unsupported num_bits = {bits}, only 4")
    kept = optional(config, "modules_to_not_convert", default=None) or []
    if not isinstance(kept, list | str | Mapping) or not all(isinstance(entry, str) for entry in kept):
        raise Refused(f"modules_to_not_convert must be a list of names, got {kept!r}")
    written = tuple(kept)
    head = optional(config, "lm_head", default=False)
    return Awq(bits, group_size, zero_point, head, written or dense_modules(surroundings.tensors), written)
