"""AWQ, on Marlin kernels where they take the layer, else on its own.

Source: SGLang 0.5.23 `srt/layers/quantization/awq/awq.py` (`AWQConfig`,
`AWQMarlinConfig`), `awq/schemes/awq_linear.py` and `awq_marlin.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dflash_audit.quantization import marlin
from dflash_audit.quantization.config import QuantConfig, Surroundings
from dflash_audit.quantization.fp8 import entries, require_capability
from dflash_audit.quantization.keys import optional, required
from dflash_audit.quantization.unquantized import dense_linear
from dflash_audit.refusal import Refused
from dflash_audit.tree import Kind, Linear, Parameter, Placement, Scheme

MIN_CAPABILITY: Final = 75
"""Of plain AWQ (`AWQConfig.get_min_capability`)."""

QUANT_TYPES: Final[Mapping[float, str]] = {4: "uint4", 8: "uint8"}
"""Bits -> Marlin's type (`AWQMarlinConfig.TYPE_MAP`); no Marlin kernel takes `uint8` with zero points."""


@dataclass(frozen=True, slots=True)
class AwqMarlin:
    """An accepted config of AWQ on Marlin; see `QuantConfig` for its methods.

    `config` is the whole config, which a layer that Marlin does not take is read from again.
    """

    bits: float
    group_size: float
    modules_to_not_convert: Any
    config: Mapping[str, Any]

    @property
    def left_dense(self) -> tuple[str, ...]:
        modules = entries(self.modules_to_not_convert or [])
        return tuple(entry for entry in modules if isinstance(entry, str))

    def names_looked_up(self, prefix: str) -> tuple[str, ...]:
        return (prefix,)

    def leaves_dense(self, entry: str, name: str) -> bool:
        return entry in name

    def linear(self, layer: Linear) -> Scheme:
        if _left_alone(layer.prefix, self.modules_to_not_convert):
            return dense_linear(layer)
        # The engine asks before the layer knows its share of a rank, so by its sizes over all ranks.
        if marlin.shape_objection(layer.output_size, layer.input_size, layer.input_size, self.group_size):
            return plain_scheme(layer, *_plain(self.config))
        return marlin_scheme(layer, self.bits, self.group_size)

    def attention(self) -> Scheme | None:
        return None

    def embedding(self, prefix: str) -> Scheme | None:
        return None


def read(config: Mapping[str, Any], surroundings: Surroundings) -> QuantConfig:
    """A config of method `awq`, for which SGLang's loader refuses drafts in bfloat16.

    Source: SGLang 0.5.23 `srt/model_loader/loader.py` (`_get_quantization_config`),
    with `AWQConfig.get_supported_act_dtypes`, which names float16 alone.

    Raises:
        Refused: always, whether `AWQConfig.from_config` takes the config or not.
    """
    _plain(config)
    require_capability("awq", MIN_CAPABILITY, surroundings)
    raise Refused("torch.bfloat16 is not supported for quantization method awq.")


def _plain(config: Mapping[str, Any]) -> tuple[float, Any]:
    """Bits and group size as `AWQConfig.from_config` reads them; `Refused` where it raises."""
    bits = required(config, "w_bit", "bits")
    group_size = required(config, "q_group_size", "group_size")
    required(config, "zero_point")
    return four_bits(bits), group_size


def read_marlin(config: Mapping[str, Any], surroundings: Surroundings) -> AwqMarlin:
    """`AWQMarlinConfig.from_config`.

    Raises:
        Refused: a key is missing, or Marlin does not take the bits, the group size or the zero points.
    """
    bits = required(config, "bits")
    group_size = required(config, "group_size")
    zero_point = required(config, "zero_point")
    quant_type = QUANT_TYPES.get(bits) if isinstance(bits, int | float) else None
    if quant_type is None:
        raise Refused(f"Unsupported num_bits = {bits!r}. Supported num_bits = {list(QUANT_TYPES)}")
    reason = marlin.objection(quant_type, group_size, zero_point, surroundings.capability)
    if reason is not None:
        raise Refused(reason)
    modules = optional(config, "modules_to_not_convert", default=None)
    return AwqMarlin(bits, group_size, modules, config)


def four_bits(bits: Any) -> float:
    """`bits` where it is 4, else `Refused`: plain AWQ knows no other number."""
    if isinstance(bits, int | float) and bits == 4:
        return bits
    raise Refused(f"Currently, only 4-bit weight quantization is supported for AWQ, but got {bits!r} bits.")


def _left_alone(name: str, modules: Any) -> bool:
    """Whether an entry of `modules_to_not_convert` is a substring of `name` (`is_layer_skipped_awq`)."""
    for entry in entries(modules or []):
        if not isinstance(entry, str):
            raise Refused(f"modules_to_not_convert must hold strings, got {entry!r}.")
        if entry in name:
            return True
    return False


def plain_scheme(layer: Linear, bits: float, group_size: Any) -> Scheme:
    """The scheme `AWQLinearScheme`.

    Raises:
        Refused: the layer does not divide into whole groups or whole packed numbers.
    """
    rows, columns = layer.input_size_per_partition, layer.output_size_per_partition
    if not isinstance(group_size, int) or group_size == 0:
        raise Refused(f"The input size cannot be divided by group_size = {group_size!r}.")
    if rows % group_size:
        raise Refused("The input size is not aligned with the quantized weight shape.")
    pack = 32 // marlin.whole(bits, "bits")
    if columns % pack:
        raise Refused("The output size is not aligned with the quantized weight shape.")
    if group_size < 0:
        raise Refused(f"group_size = {group_size} gives the scales a negative size.")
    return _scheme("AWQLinearScheme", rows, columns, rows // group_size, pack)


def marlin_scheme(layer: Linear, bits: float, group_size: float) -> Scheme:
    """The scheme `AWQMarlinLinearScheme`, for a group size that Marlin takes.

    Raises:
        Refused: one rank's share of the layer has a shape that Marlin does not take.
    """
    rows, columns = layer.input_size_per_partition, layer.output_size_per_partition
    group = layer.input_size if group_size == -1 else group_size
    reason = marlin.shape_objection(columns, rows, layer.input_size, group)
    if reason is not None:
        raise Refused(reason)
    groups = rows // marlin.whole(group, "group_size")
    return _scheme("AWQMarlinLinearScheme", rows, columns, groups, 32 // marlin.whole(bits, "bits"))


def _scheme(name: str, rows: int, columns: int, groups: int, pack: int) -> Scheme:
    """The three parameters of a layer: inputs or groups along axis 0, outputs along axis 1."""
    packed = Placement(Kind.PACKED, output_dim=1, input_dim=0, packed_dim=1, packed_factor=pack)
    scales = Placement(Kind.GROUP_SCALE, output_dim=1, input_dim=0)
    return Scheme(
        name,
        "v2",
        (
            Parameter("qweight", (rows, columns // pack), "int32", packed),
            Parameter("qzeros", (groups, columns // pack), "int32", packed),
            Parameter("scales", (groups, columns), "bfloat16", scales),
        ),
    )
