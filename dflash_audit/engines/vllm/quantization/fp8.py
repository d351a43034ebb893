"""FP8 weights by tensor or by block.

Source: vLLM 0.33.0 `model_executor/layers/quantization/fp8.py` (`Fp8Config`,
`Fp8LinearMethod`) and `utils/quant_utils.py` (`is_layer_skipped`).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dflash_audit.engines.vllm.quantization.config import QuantConfig, Surroundings
from dflash_audit.engines.vllm.quantization.dense import cache_scales, dense_linear
from dflash_audit.engines.vllm.quantization.experts import (
    Experts,
    both,
    check_whole_blocks,
    dense_experts,
    matrices,
    scales_of_blocks,
    scheme,
    tensor_scales,
)
from dflash_audit.quantization.fp8 import block_scales, matrix, shard_scales
from dflash_audit.quantization.keys import optional, required
from dflash_audit.refusal import Refused
from dflash_audit.tree import Linear, Scheme

ANY_BLOCK: Final = 89
"""From this compute capability on (times ten) a kernel takes blocks of more than a row; before, Marlin."""

MARLIN_BLOCK: Final = (128, 128)

SMALLEST_BLOCK: Final = 32
"""The least side of a block that experts are cut into anew."""


@dataclass(frozen=True, slots=True)
class Fp8:
    """An `Fp8Config` that the engine has accepted; `ignored` is the JSON value of its list."""

    static: bool
    block: tuple[int, int] | None
    ignored: Any

    @property
    def left_dense(self) -> tuple[str, ...]:
        entries = self.ignored if isinstance(self.ignored, list) else ()
        return tuple(entry for entry in entries if isinstance(entry, str))

    def names_looked_up(self, prefix: str) -> tuple[str, ...]:
        return (prefix,)

    def leaves_dense(self, entry: str, name: str) -> bool:
        return entry == name

    def linear(self, layer: Linear) -> Scheme:
        if layer.prefix in self.ignored:
            return dense_linear(layer)
        parameters = [matrix("weight", layer, "float8_e4m3fn")]
        if self.block is None:
            parameters.append(shard_scales("weight_scale", layer))
        else:
            _check_blocks(layer, self.block)
            parameters.append(block_scales(layer, self.block))
        if self.static:
            parameters.append(shard_scales("input_scale", layer))
        return Scheme("Fp8LinearMethod", "v2", tuple(parameters), self.block)

    def experts(self, layer: Experts) -> Scheme:
        if self._ignores(layer):
            return dense_experts(layer)
        name, weights = "Fp8MoEMethod", matrices("weight", layer, "float8_e4m3fn")
        if self.block is not None:
            block = _refined(layer, self.block)
            check_whole_blocks(layer, block)
            if 1 in block or (layer.capability < ANY_BLOCK and block != MARLIN_BLOCK):
                raise Refused(f"no kernel here takes FP8 experts in blocks of {block[0]} by {block[1]}")
            return scheme(name, weights, scales_of_blocks("weight_scale_inv", layer, block))
        scales = tensor_scales("weight_scale", layer)
        if self.static:
            return scheme(name, weights, scales, both("input_scale", layer, (), (), "float32"))
        return scheme(name, weights, scales)

    def _ignores(self, layer: Experts) -> bool:
        """Whether an entry is the name of the experts, or of something in them (`is_layer_skipped`)."""
        entries = self.ignored if isinstance(self.ignored, list) else self.left_dense
        if any(not isinstance(entry, str) for entry in entries):
            raise Refused(f"the layers to leave dense must be names, got {self.ignored!r}")
        return any("experts" in entry and layer.prefix in entry for entry in entries)

    def head(self, layer: Linear) -> Scheme | None:
        return None

    def attention(self) -> Scheme | None:
        return cache_scales("Fp8KVCacheMethod")

    def embedding(self, prefix: str) -> Scheme | None:
        return None


def read(config: Mapping[str, Any], surroundings: Surroundings) -> QuantConfig:
    """Read a quantization config of method `fp8` (`Fp8Config.from_config`)."""
    del surroundings
    if "fp8" not in config["quant_method"]:
        raise Refused("the fp8 method takes no checkpoint that is not in FP8")
    activation = required(config, "activation_scheme")
    if activation not in ("static", "dynamic"):
        raise Refused(f"unsupported activation scheme {activation!r}")
    ignored = optional(config, "ignored_layers", default=None)
    ignored = ignored or optional(config, "modules_to_not_convert", default=None) or []
    if not isinstance(ignored, list | str | Mapping):
        raise Refused(f"a list of modules was expected, not {ignored!r}")
    return Fp8(activation == "static", _block(config.get("weight_block_size"), activation), ignored)


def _block(value: Any, activation: str) -> tuple[int, int] | None:
    match value:
        case None:
            return None
        case [int(rows), int(columns)] if rows and columns:
            if activation != "dynamic":
                raise Refused(f"FP8 in blocks wants dynamic activations, not {activation!r}")
            return int(rows), int(columns)
    raise Refused(f"weight_block_size must be two numbers, got {value!r}")


def _refined(layer: Experts, block: tuple[int, int]) -> tuple[int, int]:
    """Smaller blocks where the checkpoint's do not divide the experts (`refine_fp8_moe_block_shape`)."""
    rows, columns = block
    if layer.inner % rows == 0 and (layer.ranks == 1 or layer.inner % columns == 0):
        return block
    side = math.gcd(rows, columns, layer.inner, layer.hidden)
    return block if side < SMALLEST_BLOCK else (side, side)


def _check_blocks(layer: Linear, block: tuple[int, int]) -> None:
    """Refuse a layer that is split inside a block (`validate_fp8_block_shape`).

    Several fused matrices that do not fit the blocks are let pass.
    """
    rows, columns = block
    sizes = layer.output_partition_sizes
    column_parallel = layer.module_class not in ("ReplicatedLinear", "RowParallelLinear")
    if column_parallel and len(sizes) > 1 and rows > 0 and any(size % rows for size in sizes):
        return
    if layer.input_size_per_partition != layer.input_size and layer.input_size_per_partition % columns:
        raise Refused(f"{layer.input_size_per_partition} inputs a rank are no multiple of block_k {columns}")
    if layer.output_size != layer.output_size_per_partition:
        for size in sizes:
            if size % rows:
                raise Refused(f"{size} outputs a rank are no multiple of block_n {rows}")
