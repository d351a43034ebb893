"""compressed-tensors: from its config to the scheme of each linear.

Source: SGLang 0.5.23 `srt/layers/quantization/compressed_tensors/compressed_tensors.py`
and `utils.py` beside it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dflash_audit.match import exact_or_regex, suffix_or_regex
from dflash_audit.quantization import lax
from dflash_audit.quantization.compressed_tensors import schemes
from dflash_audit.quantization.compressed_tensors.args import QuantizationArgs, int8_both
from dflash_audit.quantization.compressed_tensors.args import read as read_args
from dflash_audit.quantization.config import Surroundings
from dflash_audit.quantization.fp8 import entries
from dflash_audit.quantization.kv_cache import kv_cache_scheme
from dflash_audit.quantization.unquantized import dense_linear
from dflash_audit.refusal import NotModelled, Refused
from dflash_audit.tree import Linear, Parameter, Scheme

ACTIVATION_FORMATS: Final = (
    "naive-quantized", "int-quantized", "float-quantized", "nvfp4-pack-quantized", "pack-quantized",
)  # fmt: skip
"""Formats that may carry quantized activations (`is_activation_quantization_format`)."""

SPARSE_24_FORMATS: Final = frozenset(("dense", "sparse-24-bitmask"))


@dataclass(frozen=True, slots=True)
class Group:
    """One config group, as every one of its targets maps to it."""

    weights: QuantizationArgs
    activations: QuantizationArgs | None
    format: str | None


@dataclass(frozen=True, slots=True)
class Sparsity:
    """The `sparsity_config`: which targets are 2:4 sparse."""

    targets: tuple[str, ...]
    two_four: bool


@dataclass(frozen=True, slots=True)
class CompressedTensors:
    """An accepted config; see `QuantConfig` for its methods.

    `ignore` and `kv_cache` are JSON values.
    """

    format: str | None
    groups: Mapping[object, Group]
    ignore: Any
    kv_cache: Any
    sparsity: Sparsity | None
    surroundings: Surroundings

    @property
    def left_dense(self) -> tuple[str, ...]:
        return tuple(entry for entry in entries(self.ignore or []) if isinstance(entry, str))

    def names_looked_up(self, prefix: str) -> tuple[str, ...]:
        fused = prefix.rpartition(".")[2]
        shards = self.surroundings.packed_modules_mapping.get(fused, (fused,))
        return tuple(prefix.replace(fused, shard) for shard in shards)

    def leaves_dense(self, entry: str, name: str) -> bool:
        return suffix_or_regex(entry, name)

    def linear(self, layer: Linear) -> Scheme:
        ignored = self._ignores(layer.prefix)
        group = None if ignored or not self.groups else self._group(layer)
        if self._two_four(layer) and _wants_sparse_kernel(group):
            raise Refused("2:4 sparse layers (CompressedTensors24) are not supported")
        if group is None:
            return dense_linear(layer)
        name, parameters = self._scheme(layer, group)
        self._check_capability(name)
        return Scheme(name, "v2", parameters, self._block_size())

    def attention(self) -> Scheme | None:
        if self.kv_cache is None:
            return None
        if not isinstance(self.kv_cache, Mapping):
            raise Refused(f"kv_cache_scheme must be an object, got {self.kv_cache!r}")
        if not _static_fp8(self.kv_cache):
            return None
        return kv_cache_scheme("CompressedTensorsKVCacheMethod")

    def embedding(self, prefix: str) -> Scheme | None:
        del prefix  # only a ParallelLMHead is ever asked about
        return None

    def _ignores(self, prefix: str) -> bool:
        """Whether a layer is left dense; shards of a fused one must agree."""
        ignored = entries(self.ignore)
        # Of a text, the engine's `in` finds any part.
        if prefix in (self.ignore if isinstance(self.ignore, str) else ignored):
            return _any_matches(ignored, prefix)
        names = self.names_looked_up(prefix)
        verdicts = {_any_matches(ignored, name) for name in names}
        if len(verdicts) > 1:
            raise Refused(
                f"different quantization schemes for {', '.join(names)}:"
                " all shards of a fused layer must be ignored, or none"
            )
        return verdicts.pop()

    def _group(self, layer: Linear) -> Group:
        target = self._target(layer, self.groups)
        if target is None:
            raise Refused(f"no target of the config matches {layer.prefix}")
        return self.groups[target]

    def _target(self, layer: Linear, targets: Iterable[object]) -> str | None:
        """The target that a layer falls under: by name, by class, or all shards by name."""
        return (
            _first(targets, layer.prefix)
            or next((text for text in map(_text, targets) if _names_class(text, layer.module_class)), None)
            or self._fused_target(layer.prefix, targets)
        )

    def _fused_target(self, prefix: str, targets: Iterable[object]) -> str | None:
        mapping = self.surroundings.packed_modules_mapping
        fused = next((name for name in mapping if prefix.endswith(name)), None)
        if fused is None:
            return None
        matches = [_first(targets, prefix.replace(fused, shard)) for shard in mapping[fused]]
        return matches[0] if all(matches) else None

    def _two_four(self, layer: Linear) -> bool:
        if self.sparsity is None or not self.sparsity.two_four:
            return False
        return self._target(layer, self.sparsity.targets) is not None

    def _scheme(self, layer: Linear, group: Group) -> tuple[str, tuple[Parameter, ...]]:
        weights, activations = group.weights, group.activations
        layout = group.format if group.format is not None else self.format
        if _packed(weights, activations, self.surroundings.dialect.weight_only_floats):
            if layout != "pack-quantized" or weights.num_bits not in (4, 8):
                raise Refused(
                    "integer weights alone need format pack-quantized and 4 or 8 bits,"
                    f" got {layout} and {weights.num_bits}"
                )
            return "CompressedTensorsWNA16", schemes.wna16(layer, weights)
        if layout in ACTIVATION_FORMATS:
            found = self._float4(layer, weights, activations) or self._eight_bits(layer, weights, activations)
            if found is not None:
                return found
        raise Refused("no compressed-tensors scheme fits the config group of " + layer.prefix)

    def _float4(
        self, layer: Linear, weights: QuantizationArgs, activations: QuantizationArgs | None
    ) -> tuple[str, tuple[Parameter, ...]] | None:
        marlin = self.surroundings.dialect.weight_only_floats
        if activations is None:
            if _nvfp4(weights) and not marlin:
                raise Refused("NVFP4 weights without quantized activations are not served")
            if _nvfp4(weights):
                return "CompressedTensorsW4A16Fp4", schemes.nvfp4(layer, input_global_scale=False)
            return None
        if _nvfp4(weights) and _nvfp4(activations):
            native = (
                not marlin
                or self.surroundings.capability >= schemes.MIN_CAPABILITY["CompressedTensorsW4A4Fp4"]
            )
            name = "CompressedTensorsW4A4Fp4" if native else "CompressedTensorsW4A16Fp4"
            return name, schemes.nvfp4(layer, input_global_scale=True)
        # A release without Marlin for them goes on, and takes such weights for eight bits.
        if marlin and weights.num_bits == 4 and weights.type == "float":
            raise Refused(
                "float4 with quantized activations needs the NVFP4 layout (tensor_group of 16),"
                f" got strategy {weights.strategy} and group_size {weights.group_size}"
            )
        return None

    def _eight_bits(
        self, layer: Linear, weights: QuantizationArgs, activations: QuantizationArgs | None
    ) -> tuple[str, tuple[Parameter, ...]] | None:
        static = activations is not None and not activations.dynamic
        if activations is not None and _fp8_both(weights, activations):
            if self.surroundings.capability >= schemes.MIN_CAPABILITY["CompressedTensorsW8A8Fp8"]:
                return "CompressedTensorsW8A8Fp8", schemes.w8a8_fp8(layer, weights, static)
            return "CompressedTensorsW8A16Fp8", schemes.w8a16_fp8(layer, weights, static)
        if _fp8_weights(weights):
            return "CompressedTensorsW8A16Fp8", schemes.w8a16_fp8(layer, weights, static)
        if activations is not None and int8_both(weights, activations):
            return "CompressedTensorsW8A8Int8", schemes.w8a8_int8(layer, weights, activations, static)
        return None

    def _check_capability(self, scheme: str) -> None:
        needed, has = schemes.MIN_CAPABILITY[scheme], self.surroundings.capability
        if has < needed:
            raise Refused(f"{scheme} needs compute capability {needed / 10:.1f}, the card has {has / 10:.1f}")

    def _block_size(self) -> tuple[int, int] | None:
        # The engine's loaders read it from the group that targets "Linear", whichever they fill.
        group = self.groups.get("Linear")
        return group.weights.block_structure if group else None


def read(config: Mapping[str, Any], surroundings: Surroundings) -> CompressedTensors:
    """Accept a compressed-tensors config as the engine's `from_config` does.

    Raises:
        Refused: a config group is malformed.
        NotModelled: the config mixes in an FP8 config for its linears.
    """
    if "linear_fp8_config" in config:
        raise NotModelled("a compressed-tensors config with linear_fp8_config is not replayed")
    layout = config.get("format")
    groups = config.get("config_groups", {})
    if not isinstance(groups, Mapping):
        raise Refused("config_groups must be an object")
    return CompressedTensors(
        format=layout,
        groups={t: g for name, group in groups.items() for t, g in _group(name, group, layout)},
        ignore=config.get("ignore", []),
        kv_cache=config.get("kv_cache_scheme"),
        sparsity=_sparsity(config.get("sparsity_config")),
        surroundings=surroundings,
    )


def _group(name: str, config: Any, layout: Any) -> list[tuple[object, Group]]:
    if not isinstance(config, Mapping):
        raise Refused(f"config group {name} must be an object")
    targets = entries(config.get("targets"))
    if not targets:
        return []  # the engine reads the arguments once for each target
    if any(isinstance(target, list | Mapping) for target in targets):
        raise Refused(f"the targets of config group {name} must be names")
    weights = read_args(config.get("weights"), f"{name}.weights")
    group_format = config.get("format")
    activations = None
    if (group_format if group_format is not None else layout) in ACTIVATION_FORMATS:
        raw = config.get("input_activations")
        activations = read_args(raw, f"{name}.input_activations") if raw else None
    return [(target, Group(weights, activations, group_format)) for target in targets]


def _names(value: Any) -> tuple[str, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        raise Refused(f"a list of module names is needed, got {value!r}")
    return tuple(value)


def _text(entry: object) -> str:
    if not isinstance(entry, str):
        raise Refused(f"a module's name was expected, not {entry!r}")
    return entry


def _any_matches(ignored: Iterable[object], name: str) -> bool:
    return any(suffix_or_regex(_text(entry), name) for entry in ignored)


def _sparsity(value: Any) -> Sparsity | None:
    if not value:
        return None
    if not isinstance(value, Mapping) or not isinstance(value.get("format"), str):
        raise Refused("sparsity_config must be an object with a format")
    ignored = set(_names(value.get("ignore")) or ())
    targets = tuple(t for t in _names(value.get("targets")) or () if t not in ignored)
    structure = lax.text(value.get("sparsity_structure"), "sparsity_structure")
    if value.get("global_sparsity") is not None:
        lax.real(value["global_sparsity"], "global_sparsity")
    return Sparsity(targets, structure == "2:4" and value["format"] in SPARSE_24_FORMATS)


def _first(targets: Iterable[object], name: str) -> str | None:
    return next((text for text in map(_text, targets) if exact_or_regex(text, name)), None)


def _names_class(target: str, module_class: str) -> bool:
    if target.startswith("re:"):
        return exact_or_regex(target, module_class)
    return target.lower() in module_class.lower()


def _wants_sparse_kernel(group: Group | None) -> bool:
    """Whether a 2:4 sparse layer would go to the sparse kernel (`supports_cutlass_24`)."""
    if group is None:
        return True
    weights, activations = group.weights, group.activations
    return (
        activations is not None
        and weights.strategy in ("tensor", "channel")
        and activations.strategy in ("tensor", "token")
        and weights.num_bits == activations.num_bits == 8
    )


def _static_fp8(scheme: Mapping[str, Any]) -> bool:
    return (
        scheme.get("type") == "float"
        and scheme.get("num_bits") == 8
        and scheme.get("strategy") == "tensor"
        and bool(scheme.get("symmetric", True))
        and not scheme.get("dynamic", False)
    )


def _packed(
    weights: QuantizationArgs, activations: QuantizationArgs | None, weight_only_floats: bool
) -> bool:
    """Whether weights alone are taken for packed integers; a version without floats alone takes any."""
    return (
        activations is None
        and (weights.type == "int" or not weight_only_floats)
        and weights.strategy in ("channel", "group")
        and not weights.dynamic
    )


def _nvfp4(args: QuantizationArgs) -> bool:
    return (
        args.strategy == "tensor_group"
        and args.type == "float"
        and args.num_bits == 4
        and args.group_size == schemes.NVFP4_GROUP
        and args.symmetric
    )


def _fp8_both(weights: QuantizationArgs, activations: QuantizationArgs) -> bool:
    accepted = (
        weights.type == activations.type == "float"
        and weights.symmetric
        and not weights.dynamic
        and weights.strategy in ("tensor", "channel", "block")
    )
    static_tensor = activations.symmetric and activations.strategy == "tensor"
    return accepted and (bool(activations.dynamic) or static_tensor)


def _fp8_weights(weights: QuantizationArgs) -> bool:
    return (
        weights.type == "float"
        and weights.symmetric
        and not weights.dynamic
        and weights.strategy in ("tensor", "channel")
    )
