"""GPTQ checkpoints.

Source: vLLM 0.33.0 `model_executor/layers/quantization/auto_gptq.py` and `utils/gptq_utils.py`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dflash_audit.engines.vllm.quantization import packed
from dflash_audit.engines.vllm.quantization.config import QuantConfig, Surroundings
from dflash_audit.engines.vllm.quantization.dense import dense_linear
from dflash_audit.engines.vllm.quantization.experts import Experts, dense_experts
from dflash_audit.engines.vllm.quantization.inferred import quantized_modules
from dflash_audit.match import regex
from dflash_audit.quantization.keys import optional, required
from dflash_audit.refusal import NotModelled, Refused
from dflash_audit.tree import Linear, Scheme

TYPES: Final = ((4, True), (8, True))
"""(bits, symmetric) that Marlin's GPTQ takes."""


@dataclass(frozen=True, slots=True)
class Gptq:
    """An `AutoGPTQConfig`; `modules` are the parts of names that are quantized, all where it is empty.

    `bits` and `group_size` are JSON values until a layer is built with them.
    """

    bits: Any
    group_size: Any
    sym: bool
    head_quantized: Any
    dynamic: Mapping[str, Any]
    modules: tuple[str, ...]
    capability: int

    @property
    def left_dense(self) -> tuple[str, ...]:
        return tuple(pattern for pattern in self.dynamic if pattern.startswith("-:"))

    def names_looked_up(self, prefix: str) -> tuple[str, ...]:
        return (prefix,)

    def leaves_dense(self, entry: str, name: str) -> bool:
        return regex(entry.removeprefix("-:"), name)

    def linear(self, layer: Linear) -> Scheme:
        rule = self._rule(layer.prefix)
        if rule is False or not self._quantized(layer.prefix):
            return dense_linear(layer)
        packed.check_card(self.capability)
        bits, group_size, sym = self.bits, self.group_size, self.sym
        if isinstance(rule, Mapping):
            bits = rule["bits"] if isinstance(rule.get("bits"), int) else bits
            group_size = rule["group_size"] if isinstance(rule.get("group_size"), int) else group_size
            sym = rule["sym"] if isinstance(rule.get("sym"), bool) else sym
        _check_type(bits, sym)
        return packed.gptq(layer, packed.whole(bits, "bits"), packed.whole(group_size, "group_size"))

    def experts(self, layer: Experts) -> Scheme:
        packed.check_card(self.capability)
        rule = self._rule(layer.prefix)
        if isinstance(rule, Mapping):
            raise NotModelled("rules of GPTQ for a mixture of experts are not modelled for vLLM")
        group_size = packed.whole(self.group_size, "group_size")
        bits = packed.whole(self.bits, "bits")
        held = packed.gptq_experts(layer, bits, group_size)
        # What Marlin does not take is left to a method that knows no rules.
        return dense_experts(layer) if rule is False and held.name == packed.GPTQ_EXPERTS else held

    def head(self, layer: Linear) -> Scheme | None:
        if not self.head_quantized:
            return None
        if self._rule(layer.prefix) is False or not self._quantized(layer.prefix):
            return None
        return self.linear(layer)

    def attention(self) -> Scheme | None:
        return None

    def embedding(self, prefix: str) -> Scheme | None:
        return None

    def _quantized(self, prefix: str) -> bool:
        return not self.modules or any(module in prefix for module in self.modules)

    def _rule(self, prefix: str) -> Any:
        """What `dynamic` says of a module: False to leave it alone, None for nothing."""
        for pattern, changes in self.dynamic.items():
            if pattern.startswith("-:"):
                if regex(pattern[2:], prefix):
                    return False
            elif regex(pattern.removeprefix("+:"), prefix):
                return changes
        return None


def read(config: Mapping[str, Any], surroundings: Surroundings) -> QuantConfig:
    """`AutoGPTQConfig.from_config`, and the modules that the checkpoint's dtypes tell where it names none."""
    dynamic = optional(config, "dynamic", default={})
    dynamic = {} if dynamic is None else dynamic
    bits, group_size, desc_act, sym = (required(config, k) for k in ("bits", "group_size", "desc_act", "sym"))
    if not isinstance(dynamic, Mapping):
        raise Refused(f"dynamic must be an object, got {dynamic!r}")
    _check_order(desc_act, group_size, dynamic)
    _check_type(bits, sym)
    modules = optional(config, "modules_in_block_to_quantize", default=None)
    found = tuple(_flat(modules)) if modules else quantized_modules(surroundings.tensors)
    head = optional(config, "lm_head", default=False)
    return Gptq(bits, group_size, bool(sym), head, dynamic, found, surroundings.capability)


def _check_type(bits: Any, sym: Any) -> None:
    if not any(bits == b and sym == s for b, s in TYPES):
        raise Refused(f"unsupported quantization config: bits={bits!r}, sym={sym!r}")


def _check_order(desc_act: Any, group_size: Any, dynamic: Mapping[str, Any]) -> None:
    """Refuse an order by activations, but for one group an output."""
    rules = [
        (rule.get("desc_act", desc_act), rule.get("group_size", group_size))
        for pattern, rule in dynamic.items()
        if not pattern.startswith("-:") and isinstance(rule, Mapping)
    ]
    if any(ordered and size != -1 for ordered, size in [(desc_act, group_size), *rules]):
        raise Refused("GPTQ group activation ordering (desc_act) is no longer supported")


def _flat(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _flat(item)
    else:
        raise Refused(f"modules_in_block_to_quantize must hold names, got {value!r}")
