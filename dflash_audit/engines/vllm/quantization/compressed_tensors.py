"""compressed-tensors: from its config to the scheme of each linear.

Source: vLLM 0.33.0 `model_executor/layers/quantization/compressed_tensors/compressed_tensors.py`,
`utils.py` and `schemes/` beside it, and `quantization/utils/config_utils.py`.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from dflash_audit.engines.vllm.quantization.config import QuantConfig, Surroundings
from dflash_audit.engines.vllm.quantization.dense import dense_linear
from dflash_audit.engines.vllm.quantization.experts import CLASS, Experts, dense_experts
from dflash_audit.match import exact_or_regex
from dflash_audit.quantization.compressed_tensors import schemes
from dflash_audit.quantization.compressed_tensors.args import QuantizationArgs, int8_both
from dflash_audit.quantization.compressed_tensors.args import read as read_args
from dflash_audit.quantization.fp8 import matrix, shard_scales
from dflash_audit.refusal import NotModelled, Refused
from dflash_audit.tree import Kind, Linear, Parameter, Placement, Scheme

ACTIVATION_FORMATS: Final = (
    "naive-quantized",
    "int-quantized",
    "float-quantized",
    "nvfp4-pack-quantized",
)
"""Formats that may carry quantized activations (`is_activation_quantization_format`)."""

MIN_CAPABILITY: Final = {
    "CompressedTensorsW4A4Fp4": 75,
    "CompressedTensorsW4A4Mxfp4": 80,
    "CompressedTensorsW8A8Mxfp8": 75,
    "CompressedTensorsWNA16": 75,
    "CompressedTensorsW8A8Fp8": 89,
    "CompressedTensorsW8A16Fp8": 75,
    "CompressedTensorsW8A8Int8": 75,
}
"""Source: each scheme's `get_min_capability`."""

MXFP4_GROUP: Final = 32
WNA16_BITS: Final = (2, 3, 4, 5, 6, 7, 8)
PROJECTIONS: Final = ("gate_proj", "up_proj", "down_proj")
"""What the experts of a mixture are asked for by."""

CACHE_STRATEGIES: Final = ("tensor", "attn_head")


@dataclass(frozen=True, slots=True)
class Group:
    """One config group, as every one of its targets maps to it."""

    weights: QuantizationArgs
    activations: QuantizationArgs | None
    outputs: bool
    format: Any
    byte_scales: bool


@dataclass(frozen=True, slots=True)
class CompressedTensors:
    """An accepted config; see `QuantConfig` for its methods. `ignore` and `kv_cache` are JSON values."""

    format: Any
    groups: Mapping[str, Group]
    ignore: Any
    kv_cache: Any
    surroundings: Surroundings

    @property
    def left_dense(self) -> tuple[str, ...]:
        return tuple(entry for entry in self._entries() if isinstance(entry, str))

    def names_looked_up(self, prefix: str) -> tuple[str, ...]:
        return (prefix,)

    def leaves_dense(self, entry: str, name: str) -> bool:
        return exact_or_regex(entry, name)

    def linear(self, layer: Linear) -> Scheme:
        group = self._group(layer)
        if group is None:
            return dense_linear(layer)
        name, parameters = self._scheme(layer, group)
        needed, has = MIN_CAPABILITY[name], self.surroundings.capability
        if has < needed:
            raise Refused(f"{name} needs compute capability {needed / 10:.1f}, the card has {has / 10:.1f}")
        return Scheme(name, "v2", parameters, group.weights.block_structure)

    def experts(self, layer: Experts) -> Scheme:
        from dflash_audit.engines.vllm.quantization.compressed_tensors_experts import experts_scheme

        groups = self.groups
        if "Linear" in groups and CLASS not in groups:
            groups = {**groups, CLASS: groups["Linear"]}
        names = (f"{layer.prefix}.0.{projection}" for projection in PROJECTIONS)
        *others, group = [self._found(groups, name, CLASS) for name in names]
        if any(self._kind(other) != self._kind(group) for other in others):
            raise Refused(f"the projections of {layer.prefix} fall under different schemes")
        return dense_experts(layer) if group is None else experts_scheme(layer, group, self._layout(group))

    def head(self, layer: Linear) -> Scheme | None:
        group = self._group(layer)
        if group is None:
            return None
        try:
            return self.linear(layer)
        except Refused as refused:
            if is_wna16(group) and group.weights.type == "int":
                raise NotModelled("an embedding of packed integers is not modelled") from refused
            raise

    def attention(self) -> Scheme | None:
        scales = self.surroundings.kv_heads if self._cache_strategy() == "attn_head" else 1
        parameters = [
            Parameter(f"{each}_{kind}", (scales,), dtype, defaulted=True)
            for kind, dtype in (("scale", "float32"), ("zero_point", "bfloat16"))
            for each in "kvq"
        ]
        return Scheme("CompressedTensorsKVCacheMethod", "v1", tuple(parameters))

    def embedding(self, prefix: str) -> Scheme | None:
        return None

    def _cache_strategy(self) -> Any:
        """The strategy of the cache's scales (`validate_kv_cache_scheme`)."""
        if self.kv_cache is None:
            return None
        if not isinstance(self.kv_cache, Mapping):
            raise Refused(f"kv_cache_scheme must be an object, got {self.kv_cache!r}")
        bits, kind, strategy = (self.kv_cache.get(key) for key in ("num_bits", "type", "strategy"))
        if (kind, bits) != ("float", 8) or strategy not in CACHE_STRATEGIES:
            raise Refused(f"no KV cache of type {kind}, {bits} bits and strategy {strategy} is supported")
        if not self.kv_cache.get("symmetric"):
            raise Refused("only symmetric scales of a KV cache are supported")
        return strategy

    def _entries(self) -> tuple[Any, ...]:
        if not isinstance(self.ignore, list | str | Mapping):
            raise Refused(f"ignore must be a list, got {self.ignore!r}")
        return tuple(self.ignore)

    def _group(self, layer: Linear) -> Group | None:
        """The group that a layer falls under: by its name, else by its class; None leaves it dense."""
        return self._found(self.groups, layer.prefix, layer.module_class)

    def _found(self, groups: Mapping[str, Group], name: str, module_class: str) -> Group | None:
        for entry in self._entries():
            if not isinstance(entry, str):
                raise Refused(f"a module's name was expected, not {entry!r}")
            if exact_or_regex(entry, name):
                return None
        target = _first(groups, name) or next(
            (each for each in groups if _names_class(each, module_class)), None
        )
        return None if target is None else groups[target]

    def _layout(self, group: Group) -> Any:
        return group.format if group.format is not None else self.format

    def _kind(self, group: Group | None) -> Any:
        return None if group is None else (group.weights, group.activations, self._layout(group))

    def _scheme(self, layer: Linear, group: Group) -> tuple[str, tuple[Parameter, ...]]:
        """`_get_scheme_from_parts`."""
        weights, activations = group.weights, group.activations
        layout = self._layout(group)
        if is_nvfp4(weights):
            if activations is not None and not is_nvfp4(activations):
                raise Refused("NVFP4 weights want NVFP4 activations or none")
            return "CompressedTensorsW4A4Fp4", schemes.nvfp4(layer, activations is not None)
        if is_mx(weights, 4):
            if is_fp8_activations(activations):
                raise NotModelled("MXFP4 weights with FP8 activations are not modelled for vLLM")
            return "CompressedTensorsW4A4Mxfp4", _mxfp4(layer)
        if is_mx(weights, 8) and group.byte_scales:
            return "CompressedTensorsW8A8Mxfp8", _mxfp8(layer)
        if activations is not None and weights.type == "int" and weights.strategy in ("group", "channel"):
            self._refuse_unknown(group, layout)
        if is_wna16(group) and layout == "pack-quantized":
            return "CompressedTensorsWNA16", _packed(layer, weights)
        if layout in ACTIVATION_FORMATS:
            found = self._eight_bits(layer, weights, activations)
            if found is not None:
                return found
        raise Refused(f"no compressed-tensors scheme was found for {layer.prefix}")

    def _refuse_unknown(self, group: Group, layout: Any) -> None:
        """Schemes of integers on both sides that the audit does not replay."""
        activations, weights = group.activations, group.weights
        assert activations is not None
        mixed = activations.type == "float" and weights.num_bits == 4 and self.surroundings.capability == 90
        by_token = activations.strategy in ("token", "group") and activations.dynamic
        packed = layout == "pack-quantized" and activations.type == "int" and by_token
        four = (
            layout in ACTIVATION_FORMATS and activations.type == "int" and weights.num_bits == 4 and by_token
        )
        outputs = group.outputs and activations.strategy == "tensor"
        if (mixed and by_token) or packed or four or outputs:
            raise NotModelled("integer weights with activations of fewer bits are not modelled for vLLM")

    def _eight_bits(
        self, layer: Linear, weights: QuantizationArgs, activations: QuantizationArgs | None
    ) -> tuple[str, tuple[Parameter, ...]] | None:
        static = activations is not None and not activations.dynamic
        if activations is not None and is_fp8_both(weights, activations):
            if self.surroundings.capability >= MIN_CAPABILITY["CompressedTensorsW8A8Fp8"]:
                if weights.block_structure is not None and static:
                    raise Refused("FP8 in blocks wants dynamic activations")
                return "CompressedTensorsW8A8Fp8", schemes.w8a8_fp8(layer, weights, static)
            return "CompressedTensorsW8A16Fp8", schemes.w8a8_fp8(layer, weights, static)
        if _fp8_weights(weights):
            return "CompressedTensorsW8A16Fp8", schemes.w8a8_fp8(layer, weights, static)
        if activations is None:
            # The engine reads the activations' bits here.
            raise Refused(f"no compressed-tensors scheme was found for {layer.prefix}")
        if int8_both(weights, activations):
            return "CompressedTensorsW8A8Int8", _int8(layer, weights, activations, static)
        return None


def read(config: Mapping[str, Any], surroundings: Surroundings) -> QuantConfig:
    """Accept a compressed-tensors config as the engine's `from_config` does."""
    layout = config.get("format")
    if config.get("transform_config"):
        raise NotModelled("a compressed-tensors config with transform_config is not modelled for vLLM")
    groups = config.get("config_groups", {})
    if not isinstance(groups, Mapping):
        raise Refused("config_groups must be an object")
    _refuse_sparsity(config.get("sparsity_config"))
    return CompressedTensors(
        format=layout,
        groups={target: g for name, group in groups.items() for target, g in _groups(name, group, layout)},
        ignore=config.get("ignore", []),
        kv_cache=config.get("kv_cache_scheme"),
        surroundings=surroundings,
    )


def _refuse_sparsity(config: Any) -> None:
    if not config:
        return
    if not isinstance(config, Mapping) or not isinstance(config.get("format"), str):
        raise Refused("sparsity_config must be an object with a format")
    if config.get("targets"):
        raise Refused("sparsity_config: sparse checkpoints are no longer supported")


def _groups(name: str, config: Any, layout: Any) -> list[tuple[str, Group]]:
    if not isinstance(config, Mapping) or not isinstance(config.get("targets"), list | str):
        raise Refused(f"config group {name} must be an object with targets")
    targets = config["targets"]
    if not all(isinstance(target, str) for target in targets):
        raise Refused(f"the targets of config group {name} must be names")
    if len(targets) == 1 and targets[0].endswith("Attention"):
        return []
    return [(target, _group_of(name, config, layout)) for target in targets]


def _group_of(name: str, config: Mapping[str, Any], layout: Any) -> Group:
    raw = config.get("weights")
    weights = read_args(raw, f"{name}.weights")
    if weights.actorder == "group":
        raise Refused("compressed-tensors group activation ordering is no longer supported")
    own = config.get("format")
    inputs = config.get("input_activations")
    activations = read_args(inputs, f"{name}.input_activations") if inputs else None
    if (
        activations is None
        and (layout if own is None else own) in ACTIVATION_FORMATS
        and weights.type != "float"
    ):
        raise Refused(f"config group {name} of integers wants input_activations in this format")
    outputs = config.get("output_activations")
    if outputs:
        read_args(outputs, f"{name}.output_activations")
    byte_scales = isinstance(raw, Mapping) and str(raw.get("scale_dtype")).endswith("uint8")
    return Group(weights, activations, bool(outputs), own, byte_scales)


def _first(targets: Iterable[str], name: str) -> str | None:
    return next((target for target in targets if exact_or_regex(target, name)), None)


def _names_class(target: str, module_class: str) -> bool:
    if target.startswith("re:"):
        return exact_or_regex(target, module_class)
    return target.lower() in module_class.lower()


def is_nvfp4(args: QuantizationArgs) -> bool:
    return (args.strategy, args.type, args.num_bits, args.group_size, args.symmetric) == (
        "tensor_group", "float", 4, schemes.NVFP4_GROUP, True,
    )  # fmt: skip


def is_mx(args: QuantizationArgs, bits: int) -> bool:
    return (args.strategy, args.type, args.num_bits, args.group_size, args.symmetric) == (
        "group", "float", bits, MXFP4_GROUP, True,
    )  # fmt: skip


def is_fp8_activations(args: QuantizationArgs | None) -> bool:
    return args is not None and args.type == "float" and args.num_bits == 8 and bool(args.dynamic)


def is_wna16(group: Group) -> bool:
    weights = group.weights
    return group.activations is None and weights.strategy in ("channel", "group") and not weights.dynamic


def _fp8_weights(weights: QuantizationArgs) -> bool:
    strategies = ("tensor", "channel", "block")
    known = weights.strategy in strategies and weights.symmetric
    return weights.type == "float" and known and not weights.dynamic


def is_fp8_both(weights: QuantizationArgs, activations: QuantizationArgs) -> bool:
    if activations.type != "float" or not _fp8_weights(weights):
        return False
    return bool(activations.dynamic) or (activations.symmetric and activations.strategy == "tensor")


def _int8(
    layer: Linear, weights: QuantizationArgs, activations: QuantizationArgs, static: bool
) -> tuple[Parameter, ...]:
    """`CompressedTensorsW8A8Int8`."""
    parameters = [matrix("weight", layer, "int8")]
    if weights.strategy == "channel":
        shape = (layer.output_size_per_partition, 1)
        parameters.append(Parameter("weight_scale", shape, "float32", schemes.CHANNEL_SCALE))
    else:
        parameters.append(shard_scales("weight_scale", layer))
    if static and not activations.symmetric:
        parameters.append(Parameter("input_zero_point", (1,), "int8", Placement(Kind.BASE)))
    if static:
        parameters.append(Parameter("input_scale", (1,), "float32", Placement(Kind.BASE)))
    return tuple(parameters)


def _mxfp4(layer: Linear) -> tuple[Parameter, ...]:
    rows, columns = layer.output_size_per_partition, layer.input_size_per_partition
    return (
        Parameter("weight_packed", (rows, columns // 2), "uint8", schemes.WEIGHT),
        Parameter("weight_scale", (rows, columns // MXFP4_GROUP), "uint8", schemes.GROUP_SCALE),
    )


def _mxfp8(layer: Linear) -> tuple[Parameter, ...]:
    rows, columns = layer.output_size_per_partition, layer.input_size_per_partition
    return (
        Parameter("weight", (rows, columns), "float8_e4m3fn", schemes.WEIGHT),
        Parameter("weight_scale", (rows, columns // MXFP4_GROUP), "uint8", schemes.GROUP_SCALE),
    )


def _packed(layer: Linear, args: QuantizationArgs) -> tuple[Parameter, ...]:
    """`CompressedTensorsWNA16`."""
    group = -1 if args.group_size is None else args.group_size
    if group == -1 and args.strategy != "channel":
        raise Refused("packed weights want a group_size or strategy channel")
    if args.num_bits not in WNA16_BITS:
        raise Refused(f"unsupported num_bits = {args.num_bits}")
    rows, columns = layer.output_size_per_partition, layer.input_size_per_partition
    whole_scales = group == -1 and layer.input_size != columns
    size = layer.input_size if group == -1 else group
    if not whole_scales and columns % size:
        raise Refused(f"{columns} inputs of {layer.prefix} are not divisible by group_size {size}")
    groups = layer.input_size // size if whole_scales else columns // size
    pack = Fraction(32, args.num_bits)
    packed = Placement(Kind.PACKED, output_dim=0, input_dim=1, packed_dim=1, packed_factor=pack)
    scale = schemes.CHANNEL_SCALE if whole_scales else schemes.GROUP_SCALE
    words = math.ceil(columns * args.num_bits / 32)
    parameters = [
        Parameter("weight_packed", (rows, words), "int32", packed),
        Parameter("weight_scale", (rows, groups), "bfloat16", scale),
        Parameter("weight_shape", (2,), "int64", Placement(Kind.BASE)),
    ]
    if not args.symmetric:
        kind = Kind.PACKED_COLUMN if whole_scales else Kind.PACKED
        inputs = None if whole_scales else 1
        zero = Placement(kind, output_dim=0, input_dim=inputs, packed_dim=0, packed_factor=pack)
        shape = (math.ceil(rows * args.num_bits / 32), groups)
        parameters.append(Parameter("weight_zero_point", shape, "int32", zero))
    return tuple(parameters)
