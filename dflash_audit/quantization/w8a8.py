"""FP8 and INT8 weights with a scale for each row: `w8a8_fp8`, `w8a8_int8`, `auto-round-int8`.

Source: SGLang 0.5.23 `srt/layers/quantization/w8a8_fp8.py` (`W8A8Fp8Config`)
and `w8a8_int8.py` (`W8A8Int8Config`), with `should_ignore_layer` of
`compressed_tensors/utils.py`. The forms without a config of their own are
those of `get_quant_config` in `srt/model_loader/weight_utils.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dflash_audit.match import suffix_or_regex
from dflash_audit.quantization.config import QuantConfig, Surroundings
from dflash_audit.quantization.fp8 import entries, matrix, method_of, require_capability
from dflash_audit.quantization.unquantized import dense_linear
from dflash_audit.refusal import Refused
from dflash_audit.tree import Kind, Linear, Parameter, Placement, Scheme


@dataclass(frozen=True, slots=True)
class W8A8Fp8:
    """A `W8A8Fp8Config`: every linear, with dense weights where the checkpoint is not `serialized`."""

    serialized: bool

    @property
    def left_dense(self) -> tuple[str, ...]:
        return ()

    def names_looked_up(self, prefix: str) -> tuple[str, ...]:
        return (prefix,)

    def leaves_dense(self, entry: str, name: str) -> bool:
        return False

    def linear(self, layer: Linear) -> Scheme:
        name = "W8A8Fp8LinearMethod"
        if not self.serialized:
            return Scheme(name, "v1", (matrix("weight", layer, "bfloat16"),))
        return Scheme(name, "v1", (matrix("weight", layer, "float8_e4m3fn"), _row_scales(layer)))

    def attention(self) -> Scheme | None:
        return None

    def embedding(self, prefix: str) -> Scheme | None:
        return None


@dataclass(frozen=True, slots=True)
class W8A8Int8:
    """A `W8A8Int8Config`; `ignore` is its JSON value, `[]` for none."""

    ignore: object
    fused: Mapping[str, tuple[str, ...]]

    @property
    def left_dense(self) -> tuple[str, ...]:
        return tuple(entry for entry in entries(self.ignore) if isinstance(entry, str))

    def names_looked_up(self, prefix: str) -> tuple[str, ...]:
        return (prefix,)

    def leaves_dense(self, entry: str, name: str) -> bool:
        return suffix_or_regex(entry, name)

    def linear(self, layer: Linear) -> Scheme:
        if self._ignored(layer.prefix):
            return dense_linear(layer)
        return Scheme("W8A8Int8LinearMethod", "v1", (matrix("weight", layer, "int8"), _row_scales(layer)))

    def attention(self) -> Scheme | None:
        # The engine gives whatever it ignores the method of a linear, and asks for attention without a name.
        if self._ignored(""):
            raise Refused("the ignore list matches attention, which then gets the method of a linear")
        return None

    def embedding(self, prefix: str) -> Scheme | None:
        if self._ignored(prefix):
            raise Refused(f"{prefix} is ignored and gets UnquantizedLinearMethod, which embeds nothing")
        return None

    def _ignored(self, name: str) -> bool:
        last = name.split(".")[-1]
        if last not in self.fused or name in entries(self.ignore):
            return self._listed(name)
        kept = {self._listed(name.replace(last, shard)) for shard in self.fused[last]}
        if len(kept) > 1:
            raise Refused(f"found different quantization schemes for the shards of {name}")
        return kept == {True}

    def _listed(self, name: str) -> bool:
        return any(_matches(entry, name) for entry in entries(self.ignore))


def read_fp8(config: Mapping[str, Any], surroundings: Surroundings) -> QuantConfig:
    """Read a quantization config for method `w8a8_fp8` (`W8A8Fp8Config.from_config`).

    Raises `Refused` where the engine does.
    """
    method = method_of(config)
    require_capability("w8a8_fp8", 89, surroundings)
    return W8A8Fp8("compressed-tensors" in method or "w8a8_fp8" in method)


def fp8_online(surroundings: Surroundings) -> QuantConfig:
    """`w8a8_fp8` for a checkpoint without a config: dense weights, quantized after loading."""
    require_capability("w8a8_fp8", 89, surroundings)
    return W8A8Fp8(serialized=False)


def read_int8(config: Mapping[str, Any], surroundings: Surroundings) -> QuantConfig:
    """Read a quantization config for `w8a8_int8` or `auto-round-int8` (`W8A8Int8Config`).

    Raises `Refused` where the engine does.
    """
    require_capability("w8a8_int8", 75, surroundings)
    ignore = config.get("ignore")
    return W8A8Int8([] if ignore is None else ignore, surroundings.packed_modules_mapping)


def int8_online(surroundings: Surroundings) -> QuantConfig:
    """`w8a8_int8` for a checkpoint without a config: it must hold INT8 weights all the same."""
    require_capability("w8a8_int8", 75, surroundings)
    return W8A8Int8([], {})


def _row_scales(layer: Linear) -> Parameter:
    placement = Placement(Kind.CHANNEL_SCALE, output_dim=0)
    return Parameter("weight_scale", (layer.output_size_per_partition, 1), "float32", placement)


def _matches(entry: object, name: str) -> bool:
    """Whether an entry is a regex that a name starts with, the name, or its last parts."""
    if not isinstance(entry, str):
        raise Refused(f"a module's name was expected in an ignore list, not {entry!r}")
    return suffix_or_regex(entry, name)
