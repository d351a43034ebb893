"""AutoRound, whose layers are packed as GPTQ's or as AWQ's.

Source: vLLM 0.33.0 `model_executor/layers/quantization/inc/inc.py`, `config_parser.py` and
`schemes/inc_wna16_linear.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dflash_audit.engines.vllm.quantization import packed
from dflash_audit.engines.vllm.quantization.config import QuantConfig, Surroundings
from dflash_audit.engines.vllm.quantization.dense import dense_linear
from dflash_audit.engines.vllm.quantization.experts import Experts, dense_experts
from dflash_audit.match import regex
from dflash_audit.quantization.auto_round import BACKENDS, FORMATS, REGEX_CHARACTERS
from dflash_audit.quantization.keys import optional, required
from dflash_audit.refusal import NoPattern, NotModelled, Refused
from dflash_audit.tree import Linear, Scheme

BITS: Final = (2, 3, 4, 5, 6, 7, 8)
OTHER_TYPES: Final = ("fp", "mx_fp", "fp8")
OTHER_FORMATS: Final = ("auto_round:fp8", "auto_round:llm_compressor")
DENSE_BITS: Final = 16
HUMMING_BITS: Final = (2, 3, 5, 6, 7)
"""Source: `schemes/inc_wna16_scheme.py`, `CUDA_HUMMING_SUPPORTED_BITS`."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What one layer is given."""

    bits: Any
    group_size: int
    sym: Any


DENSE: Final = Choice(DENSE_BITS, -1, True)


@dataclass(frozen=True, slots=True)
class Inc:
    """An accepted `INCConfig` of integer weights."""

    whole: Choice
    packing_format: str
    backend: str
    blocks: tuple[str, ...]
    extra: Mapping[str, Any]
    capability: int

    @property
    def left_dense(self) -> tuple[str, ...]:
        return tuple(name for name, changes in self.extra.items() if _bits(changes, 0) >= DENSE_BITS)

    def names_looked_up(self, prefix: str) -> tuple[str, ...]:
        return (prefix,)

    def leaves_dense(self, entry: str, name: str) -> bool:
        return entry in (name, f"model.{name}") or name.endswith(f".{entry}") or _searched(entry, name)

    def linear(self, layer: Linear) -> Scheme:
        choice = self._choice(layer.prefix, quantized=True)
        return dense_linear(layer) if choice.bits >= DENSE_BITS else self._packed(layer, choice)

    def experts(self, layer: Experts) -> Scheme:
        choice = self._choice(layer.prefix, quantized=True)
        if choice.bits >= DENSE_BITS:
            return dense_experts(layer)
        gptq = "gptq" in self.packing_format or "gptq" in self.backend
        refused = (gptq and choice.sym is not True) or (choice.bits == 8 and not gptq)
        if choice.bits not in (4, 8) or refused:
            raise NotModelled(f"experts packed by AutoRound in {choice.bits} bits are not modelled for vLLM")
        if gptq:
            return packed.gptq_experts(layer, int(choice.bits), choice.group_size, padded=False)
        return packed.awq_experts(layer, 4, choice.group_size, not choice.sym, padded=False)

    def head(self, layer: Linear) -> Scheme | None:
        choice = self._choice(layer.prefix, quantized=False)
        return dense_linear(layer) if choice.bits >= DENSE_BITS else self._packed(layer, choice)

    def attention(self) -> Scheme | None:
        return None

    def embedding(self, prefix: str) -> Scheme | None:
        return None

    def _packed(self, layer: Linear, choice: Choice) -> Scheme:
        if choice.bits in HUMMING_BITS:
            raise NotModelled(
                f"AutoRound in {choice.bits} bits, unpacked by Humming, is not modelled for vLLM"
            )
        on_marlin = self.backend == "auto" or "marlin" in self.backend
        marlin = on_marlin and choice.group_size in packed.MARLIN_GROUPS
        marlin = marlin and self.capability >= packed.MARLIN_CARD
        if "gptq" in self.packing_format or "gptq" in self.backend:
            if not marlin or choice.bits not in (4, 8) or choice.sym is not True:
                raise Refused(
                    f"INC quantization with bits={choice.bits}, sym={choice.sym} is not supported here"
                )
            return packed.gptq(layer, choice.bits, choice.group_size)
        if choice.bits != 4:
            raise Refused(f"unsupported num_bits = {choice.bits}, only 4")
        if marlin and not choice.sym:
            return packed.awq_on_marlin(layer, 4, choice.group_size)
        return packed.awq(layer, 4, choice.group_size, zero_point=False)

    def _choice(self, name: str, quantized: bool) -> Choice:
        """`resolve`: by the whole name, by its last parts, else by block and pattern."""
        for key in (name, f"model.{name}"):
            if key in self.extra and _bits(self.extra[key], DENSE_BITS) >= DENSE_BITS:
                return DENSE
        if name in self.extra:
            return self._with(self.extra[name], self.whole)
        for key, changes in self.extra.items():
            if name.endswith(f".{key}"):
                return self._with(changes, self.whole)
        if self.blocks:
            quantized = name.startswith(self.blocks)
        otherwise = self.whole if quantized else DENSE
        for pattern, changes in self.extra.items():
            if _searched(pattern, name):
                return self._with(changes, otherwise)
        return otherwise

    def _with(self, changes: Any, otherwise: Choice) -> Choice:
        if not isinstance(changes, Mapping):
            raise Refused(f"An entry of extra_config must be an object, got {changes!r}.")
        bits = changes.get("bits", otherwise.bits)
        if not isinstance(bits, int | float):
            raise Refused(f"bits must be a number, got {bits!r}")
        group_size = changes.get("group_size", otherwise.group_size)
        return Choice(bits, _group_size(group_size), changes.get("sym", otherwise.sym))


def read(config: Mapping[str, Any], surroundings: Surroundings) -> QuantConfig:
    """`INCConfig.from_config`."""
    data_type = optional(config, "data_type", default="int")
    bits = required(config, "bits")
    group_size = required(config, "group_size")
    packing = optional(config, "packing_format", default=None)
    packing = FORMATS[0] if packing is None else packing
    if not isinstance(data_type, str) or data_type in OTHER_TYPES or "mx_fp" in data_type:
        raise NotModelled(f"AutoRound with data_type {data_type!r} is not modelled for vLLM")
    if isinstance(group_size, list) or packing in OTHER_FORMATS:
        raise Refused(f"AutoRound of integers takes no group_size {group_size!r} in {packing}")
    if bits not in BITS or data_type != "int" or packing not in FORMATS:
        raise Refused(f"unsupported AutoRound config: bits={bits!r}, data_type={data_type!r}, {packing!r}")
    backend = optional(config, "backend", "vllm_backend", default="auto")
    if backend not in BACKENDS:
        raise Refused(f"unsupported backend: {backend!r}, only {', '.join(BACKENDS)}")
    blocks = optional(config, "block_name_to_quantize", "to_quant_block_names", default=None) or []
    blocks = blocks.split(",") if isinstance(blocks, str) else blocks
    extra = optional(config, "extra_config", default=None) or {}
    if not isinstance(extra, Mapping) or not isinstance(blocks, list):
        raise Refused("extra_config must be an object, and block_name_to_quantize a list")
    if not all(isinstance(block, str) for block in blocks):
        raise Refused(f"block_name_to_quantize must hold names, got {blocks!r}")
    whole = Choice(bits, _group_size(group_size), optional(config, "sym", default=True))
    return Inc(whole, packing, backend, tuple(blocks), extra, surroundings.capability)


def _group_size(value: Any) -> int:
    if not isinstance(value, int):
        raise Refused(f"INC group_size must be an int, got {value!r}")
    return int(value)


def _bits(changes: Any, default: int) -> float:
    bits = changes.get("bits", default) if isinstance(changes, Mapping) else default
    return bits if isinstance(bits, int | float) else default


def _searched(pattern: str, name: str) -> bool:
    """Whether a key is a pattern that is found in the name; one that does not compile is passed over."""
    if REGEX_CHARACTERS.isdisjoint(pattern):
        return False
    try:
        return regex(pattern, name, "search")
    except NoPattern as error:
        if not error.syntax:
            raise
        return False
