"""AutoRound, whose layers are packed as GPTQ's or as AWQ's.

Source: SGLang 0.5.23 `srt/layers/quantization/auto_round.py` (`AutoRoundConfig`).
It takes no `packed_modules_mapping`, so a fused layer goes by its own name alone.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dflash_audit import match
from dflash_audit.quantization import awq, gptq, marlin
from dflash_audit.quantization.config import Surroundings
from dflash_audit.quantization.fp8 import require_capability
from dflash_audit.quantization.keys import optional, required
from dflash_audit.quantization.unquantized import dense_linear
from dflash_audit.refusal import NoPattern, NotModelled, Refused
from dflash_audit.tree import Linear, Scheme

MIN_CAPABILITY: Final = 60
BITS: Final = (2, 3, 4, 8)
DATA_TYPES: Final = ("int",)
FORMATS: Final = ("auto_round:auto_gptq", "auto_round:auto_awq")
BACKENDS: Final = ("auto", "gptq", "gptq:marlin", "awq", "awq:marlin", "marlin")
UNQUANTIZED_BITS: Final = 16
REGEX_CHARACTERS: Final = frozenset(r"*+?^$()[]{}|\\")
"""A key of `extra_config` without any of them is a name, never a pattern."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What one layer is given: bits, group size and symmetry, unchecked."""

    bits: Any
    group_size: Any
    sym: Any


DENSE: Final = Choice(UNQUANTIZED_BITS, -1, True)


@dataclass(frozen=True, slots=True)
class AutoRound:
    """An accepted config; see `QuantConfig` for its methods."""

    whole: Choice
    packing_format: str
    backend: str
    blocks: Any
    extra: Any
    desc_act: Any
    capability: int
    plain_gptq: bool

    @property
    def left_dense(self) -> tuple[str, ...]:
        # An entry that no layer comes to may hold anything.
        return tuple(name for name, changes in (self.extra or {}).items() if _says_dense(changes))

    def names_looked_up(self, prefix: str) -> tuple[str, ...]:
        return (prefix,)

    def leaves_dense(self, entry: str, name: str) -> bool:
        return entry == name or _matches(entry, name)

    def linear(self, layer: Linear) -> Scheme:
        choice = self._choice(layer.prefix)
        if not _quantized(choice):
            return dense_linear(layer)
        if not self._gptq():
            if self._awq_on_marlin(choice):
                return awq.marlin_scheme(layer, choice.bits, choice.group_size)
            return awq.plain_scheme(layer, awq.four_bits(choice.bits), choice.group_size)
        if self._gptq_on_marlin(choice):
            settings = gptq.config_settings(choice.bits, choice.group_size, choice.sym, self.desc_act)
            return gptq.marlin_scheme(layer, settings, self.capability)
        self._check_plain_gptq(choice)
        if self.plain_gptq:
            raise NotModelled("AutoRound on the plain GPTQ kernel is not replayed")
        raise Refused("The non-Marlin GPTQ CUDA kernel has been removed.")

    def attention(self) -> Scheme | None:
        # The attention is asked about without a name.
        self._check("")
        return None

    def embedding(self, prefix: str) -> Scheme | None:
        self._check(prefix)
        return None

    def _check(self, name: str) -> None:
        """Refuse where the engine makes a config for a layer that it then leaves alone."""
        choice = self._choice(name)
        if not _quantized(choice):
            return
        if not self._gptq():
            if not self._awq_on_marlin(choice):
                awq.four_bits(choice.bits)
        elif not self._gptq_on_marlin(choice):
            self._check_plain_gptq(choice)

    def _gptq(self) -> bool:
        return "gptq" in self.packing_format or "gptq" in self.backend

    def _marlin(self) -> bool:
        return self.backend == "auto" or "marlin" in self.backend

    def _gptq_on_marlin(self, choice: Choice) -> bool:
        if not self._marlin():
            return False
        if isinstance(choice.sym, list | Mapping):
            raise Refused(f"sym must be true or false, got {choice.sym!r}.")
        quant_type = gptq.quant_type(choice.bits, choice.sym)
        return quant_type is not None and self._takes(quant_type, choice)

    def _awq_on_marlin(self, choice: Choice) -> bool:
        quant_type = awq.QUANT_TYPES.get(choice.bits)
        return self._marlin() and quant_type is not None and self._takes(quant_type, choice)

    def _takes(self, quant_type: str, choice: Choice) -> bool:
        return marlin.objection(quant_type, choice.group_size, not choice.sym, self.capability) is None

    def _check_plain_gptq(self, choice: Choice) -> None:
        if self.desc_act:
            raise Refused("SGLang's AutoRound GPTQ loader supports desc_act=False only.")
        if not isinstance(choice.bits, int) or choice.bits not in BITS:
            raise Refused(f"Only 2/3/4/8-bit weights are supported for GPTQ, but got {choice.bits!r} bits.")

    def _choice(self, name: str) -> Choice:
        """`get_layer_config`: by exact name, by pattern, else by the blocks to quantize."""
        if self.extra and not isinstance(self.extra, Mapping):
            raise Refused(f"extra_config must be an object, got {self.extra!r}.")
        if self.extra and name in self.extra:
            return _with(self.extra[name], self.whole)
        otherwise = self.whole if not self.blocks or _starts(name, self.blocks) else DENSE
        for pattern, changes in self.extra.items() if self.extra else ():
            if _matches(pattern, name):
                return _with(changes, otherwise)
        return otherwise


def read(config: Mapping[str, Any], surroundings: Surroundings) -> AutoRound:
    """`AutoRoundConfig.from_config`.

    Raises:
        Refused: a key is missing, has a value outside the lists above, or the card is too old.
    """
    bits = required(config, "bits")
    if not isinstance(bits, int) or bits not in BITS:
        raise Refused(f"Unsupported weight_bits: {bits!r}, currently only support {list(BITS)}")
    whole = Choice(bits, required(config, "group_size"), required(config, "sym"))
    _one_of("data_type", optional(config, "data_type", default="int"), DATA_TYPES)
    packing = optional(config, "packing_format", default=FORMATS[0])
    backend = optional(config, "backend", "vllm_backend", "sglang_backend", default="auto")
    blocks = optional(config, "block_name_to_quantize", "to_quant_block_names", default=None)
    require_capability("auto-round", MIN_CAPABILITY, surroundings)
    return AutoRound(
        whole=whole,
        packing_format=_one_of("packing_format", packing, FORMATS),
        backend=_one_of("backend", backend, BACKENDS),
        blocks=blocks.split(",") if isinstance(blocks, str) else blocks,
        extra=optional(config, "extra_config", default=None),
        desc_act=optional(config, "desc_act", default=False),
        capability=surroundings.capability,
        plain_gptq="gptq" in surroundings.dialect.more,
    )


def _one_of(field: str, value: Any, allowed: Iterable[str]) -> str:
    if isinstance(value, str) and value in allowed:
        return value
    raise Refused(f"Unsupported {field}: {value!r}, currently only support {', '.join(allowed)}")


def _quantized(choice: Choice) -> bool:
    if not isinstance(choice.bits, int | float):
        raise Refused(f"bits must be a number, got {choice.bits!r}.")
    return bool(choice.bits < UNQUANTIZED_BITS)


def _says_dense(changes: Any) -> bool:
    bits = changes.get("bits") if isinstance(changes, Mapping) else None
    return isinstance(bits, int | float) and bits >= UNQUANTIZED_BITS


def _with(changes: Any, otherwise: Choice) -> Choice:
    """The choice under an entry of `extra_config`, whose keys are taken as they are, null too."""
    if not isinstance(changes, Mapping):
        raise Refused(f"An entry of extra_config must be an object, got {changes!r}.")
    return Choice(
        optional(changes, "bits", default=otherwise.bits),
        optional(changes, "group_size", default=otherwise.group_size),
        optional(changes, "sym", default=otherwise.sym),
    )


def _starts(name: str, blocks: Any) -> bool:
    """Whether `name` starts with one of the blocks to quantize."""
    if not isinstance(blocks, list | Mapping):
        raise Refused(f"block_name_to_quantize must be a list, got {blocks!r}.")
    for block in blocks:
        if not isinstance(block, str):
            raise Refused(f"block_name_to_quantize must hold strings, got {block!r}.")
        if name.startswith(block):
            return True
    return False


def _matches(pattern: str, name: str) -> bool:
    """Whether a key is a pattern for the whole name; the engine passes over one that does not compile."""
    if REGEX_CHARACTERS.isdisjoint(pattern):
        return False
    try:
        return match.regex(pattern, name, "fullmatch")
    except NoPattern as error:
        if error.syntax:
            return False
        raise
