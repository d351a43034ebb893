"""GPTQ, which the engine runs on Marlin kernels alone.

Source: SGLang 0.5.23 `srt/layers/quantization/gptq/gptq.py` (`GPTQMarlinConfig`),
`gptq/schemes/gptq_marlin.py`, and `utils.py` beside them (`get_dynamic_override`,
`override_config`). On CUDA there is no method `gptq`, and `GPTQLinearScheme` raises.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dflash_audit import match
from dflash_audit.quantization import marlin
from dflash_audit.quantization.config import Surroundings
from dflash_audit.quantization.fp8 import require_capability
from dflash_audit.quantization.keys import optional, required
from dflash_audit.quantization.unquantized import dense_linear
from dflash_audit.refusal import Refused
from dflash_audit.tree import Kind, Linear, Parameter, Placement, Scheme

QUANT_TYPES: Final[Mapping[tuple[float, float], str]] = {(4, True): "uint4b8", (8, True): "uint8b128"}
"""(bits, symmetric) -> Marlin's type (`GPTQMarlinConfig.TYPE_MAP`)."""

SKIP: Final = "-:"
"""How a rule of `dynamic` begins that leaves layers dense."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How one layer is quantized: values of the config, unchecked, as a rule may change them.

    `desc_act` is what the config says, `act_order` whether the engine goes by it.
    """

    bits: Any
    group_size: Any
    sym: Any
    desc_act: Any
    act_order: bool


def config_settings(bits: Any, group_size: Any, sym: Any, desc_act: Any) -> Settings:
    """The settings of a whole config; with one group to a column there is no act-order."""
    return Settings(bits, group_size, sym, desc_act, bool(desc_act) and group_size != -1)


@dataclass(frozen=True, slots=True)
class GptqMarlin:
    """An accepted config; see `QuantConfig` for its methods."""

    settings: Settings
    dynamic: Any
    capability: int

    @property
    def left_dense(self) -> tuple[str, ...]:
        return tuple(pattern for pattern in self.dynamic if pattern.startswith(SKIP))

    def names_looked_up(self, prefix: str) -> tuple[str, ...]:
        return (prefix,)

    def leaves_dense(self, entry: str, name: str) -> bool:
        return match.regex(entry.removeprefix(SKIP), name)

    def linear(self, layer: Linear) -> Scheme:
        rule = self._rule(layer.prefix)
        chosen = self.settings
        if rule is not None:
            positive, changes = rule
            if not positive or changes is False:
                return dense_linear(layer)
            if layer.prefix:
                chosen = _changed(chosen, changes)
        return marlin_scheme(layer, chosen, self.capability)

    def attention(self) -> Scheme | None:
        return None

    def embedding(self, prefix: str) -> Scheme | None:
        return None

    def _rule(self, name: str) -> tuple[bool, Any] | None:
        """The first rule of `dynamic` whose pattern matches: (not one to skip, its value)."""
        if not isinstance(self.dynamic, Mapping):
            raise Refused(f"dynamic must be an object of rules, got {self.dynamic!r}.")
        for pattern, changes in self.dynamic.items():
            positive = not pattern.startswith(SKIP)
            if match.regex(pattern.removeprefix("+:" if positive else SKIP), name):
                return positive, changes
        return None


def read(config: Mapping[str, Any], surroundings: Surroundings) -> GptqMarlin:
    """`GPTQMarlinConfig.from_config`.

    Raises:
        Refused: a key is missing, no Marlin type has these bits and this symmetry, or the card is too old.
    """
    dynamic = config.get("dynamic")
    whole = config_settings(
        bits=required(config, "bits"),
        group_size=required(config, "group_size"),
        sym=required(config, "sym"),
        desc_act=required(config, "desc_act"),
    )
    _supported_type(whole)
    require_capability("gptq_marlin", marlin.MIN_CAPABILITY, surroundings)
    return GptqMarlin(whole, {} if dynamic is None else dynamic, surroundings.capability)


def quant_type(bits: Any, sym: Any) -> str | None:
    """Marlin's type of weights of so many bits and this symmetry, None where it has none."""
    if isinstance(bits, int | float) and isinstance(sym, int | float):
        return QUANT_TYPES.get((bits, sym))
    return None


def _supported_type(settings: Settings) -> str:
    found = quant_type(settings.bits, settings.sym)
    if found is None:
        raise Refused(f"Unsupported quantization config: bits={settings.bits}, sym={settings.sym}")
    return found


def _changed(settings: Settings, changes: Any) -> Settings:
    """The settings under a rule of `dynamic`; a value of another type than its own is passed over."""
    if not isinstance(changes, Mapping):
        raise Refused(f"A rule of dynamic must be an object, got {changes!r}.")

    def take(key: str, kind: type, current: Any) -> Any:
        value = optional(changes, key, default=current)
        return value if isinstance(value, kind) else current

    return Settings(
        bits=take("bits", int, settings.bits),
        group_size=take("group_size", int, settings.group_size),
        sym=take("sym", bool, settings.sym),
        desc_act=settings.desc_act,
        act_order=take("desc_act", bool, settings.act_order),
    )


def marlin_scheme(layer: Linear, settings: Settings, capability: int) -> Scheme:
    """The scheme `GPTQMarlinLinearScheme`: inputs along axis 0, outputs along axis 1.

    Scales and zeros are one rank's, or every rank's where no rank holds whole
    groups: under act-order, and with one group to a column split over ranks.

    Raises:
        Refused: Marlin does not take the type or the group size.
    """
    reason = marlin.objection(_supported_type(settings), settings.group_size, False, capability)
    if reason is not None:
        raise Refused(reason)
    pack = 32 // marlin.whole(settings.bits, "bits")
    one_group = settings.group_size == -1
    group = layer.input_size if one_group else marlin.whole(settings.group_size, "group_size")
    rows, columns = layer.input_size_per_partition, layer.output_size_per_partition
    row_parallel = layer.input_size != rows
    everywhere = settings.act_order or (one_group and row_parallel)
    groups = (layer.input_size if everywhere else rows) // group
    scales = (
        Placement(Kind.CHANNEL_SCALE, output_dim=1)
        if everywhere
        else Placement(Kind.GROUP_SCALE, output_dim=1, input_dim=0)
    )
    zeros = (
        Placement(Kind.PACKED_COLUMN, output_dim=1, packed_dim=1, packed_factor=pack)
        if everywhere
        else Placement(Kind.PACKED, output_dim=1, input_dim=0, packed_dim=1, packed_factor=pack)
    )
    weight = Placement(Kind.PACKED, output_dim=1, input_dim=0, packed_dim=0, packed_factor=pack)
    order = Placement(Kind.ROW, input_dim=0)
    in_order = not (settings.desc_act or settings.act_order)
    return Scheme(
        "GPTQMarlinLinearScheme",
        "v2",
        (
            Parameter("qweight", (rows // pack, columns), "int32", weight),
            Parameter("g_idx", (rows,), "int32", order, defaulted=in_order),
            Parameter("scales", (groups, columns), "bfloat16", scales),
            Parameter("qzeros", (groups, columns // pack), "int32", zeros),
        ),
    )
