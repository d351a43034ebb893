"""ModelOpt checkpoints: FP8, NVFP4, both mixed with other methods, and NVFP4 made at load time.

Source: SGLang 0.5.23 `srt/layers/quantization/modelopt_quant.py`
(`ModelOptFp8Config`, `ModelOptFp4Config`, `ModelOptMixedPrecisionConfig` and
their methods) and `nvfp4_online.py` (`NvFp4OnlineConfig`). Each config comes in
a flat form (`quantization_config` of `config.json`, and some
`hf_quant_config.json`) and in one nested under `quantization`
(`hf_quant_config.json`); a flat one is told by its `quant_algo`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dflash_audit.match import regex
from dflash_audit.quantization.config import QuantConfig, Surroundings
from dflash_audit.quantization.fp8 import (
    Fp8Weights,
    both_spellings,
    covers,
    entries,
    fp8_linear,
    matrix,
    names,
    require_capability,
    second_loader,
    shard_names,
    shard_scales,
    skipped,
)
from dflash_audit.quantization.keys import optional
from dflash_audit.quantization.kv_cache import kv_cache_scheme
from dflash_audit.quantization.unquantized import dense_linear
from dflash_audit.refusal import NotModelled, Refused
from dflash_audit.tree import Kind, Linear, Parameter, Placement, Scheme

FP4_ALGORITHMS: Final = ("FP8", "NVFP4", "NVFP4_AWQ", "W4A16_NVFP4")
"""Every `quant_algo` that `ModelOptFp4Config` takes; all but the first are packed weights."""

BLOCK_FP8_ALGORITHMS: Final = ("FP8_PB_WO", "FP8_BLOCK_SCALES")
FP8_BLOCK: Final = 128
"""The two names of FP8 in blocks in a mixed checkpoint (`_BLOCK_FP8_ALGOS`)."""

_NOT_A_GLOB = re.compile(r"\(\?|\{|\[[:\[]|--|&&|~~|\|\||(?:[\^$]|\\[bB])[+?]|\\(?![dDsSwWbB])[A-Za-z0-9]")
"""What the engine's `regex` may read in another way than `re` does."""


@dataclass(frozen=True, slots=True)
class Exclusions:
    """The modules that a ModelOpt config leaves dense; `modules` is the JSON value of its list."""

    modules: object
    fused: Mapping[str, tuple[str, ...]]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(module for module in entries(self.modules or []) if isinstance(module, str))

    def cover(self, prefix: str) -> bool:
        """Whether a module is named (`is_layer_skipped`) or fits a pattern (`is_layer_excluded`).

        The rules for `language_model.` and for the projections of latent
        attention are left out: no module of a draft has such a name.
        """
        modules = entries(self.modules or [])
        return skipped(prefix, modules, self.fused) or any(fits(module, prefix) for module in modules)


@dataclass(frozen=True, slots=True)
class _Excluding:
    """What the three methods share: how they leave modules dense."""

    exclusions: Exclusions

    @property
    def left_dense(self) -> tuple[str, ...]:
        return self.exclusions.names

    def names_looked_up(self, prefix: str) -> tuple[str, ...]:
        return (prefix, *shard_names(prefix, self.exclusions.fused))

    def leaves_dense(self, entry: str, name: str) -> bool:
        return covers(entry, name) or fits(entry, name)


@dataclass(frozen=True, slots=True)
class ModelOptFp8(_Excluding):
    """A `ModelOptFp8Config` that the engine has accepted."""

    kv_cache: bool

    def linear(self, layer: Linear) -> Scheme:
        return dense_linear(layer) if self.exclusions.cover(layer.prefix) else _static_fp8(layer)

    def attention(self) -> Scheme | None:
        return kv_cache_scheme("ModelOptFp8KVCacheMethod") if self.kv_cache else None

    def embedding(self, prefix: str) -> Scheme | None:
        return None


@dataclass(frozen=True, slots=True)
class ModelOptFp4(_Excluding):
    """A `ModelOptFp4Config` of packed weights that the engine has accepted.

    `group_size` is the JSON value; `algorithm` one of FP4_ALGORITHMS.
    """

    algorithm: str
    group_size: object

    def linear(self, layer: Linear) -> Scheme:
        if self.exclusions.cover(layer.prefix):
            return dense_linear(layer)
        if self.algorithm == "W4A16_NVFP4":
            return _nvfp4_weight_only(layer, self.group_size)
        return _nvfp4(layer, self.group_size, awq=self.algorithm == "NVFP4_AWQ")

    def attention(self) -> Scheme | None:
        # A config that says nothing of the KV cache counts as "auto", which is enough for scales.
        return kv_cache_scheme("ModelOptFp8KVCacheMethod")

    def embedding(self, prefix: str) -> Scheme | None:
        return None


@dataclass(frozen=True, slots=True)
class ModelOptMixed(_Excluding):
    """A `ModelOptMixedPrecisionConfig` that the engine has accepted.

    `layers`: module -> its JSON object in `quantized_layers`; `group_size` is
    that of every NVFP4 layer, `block` the side of every FP8 block.
    """

    layers: Mapping[str, Mapping[str, Any]]
    group_size: object
    block: int
    kv_cache: bool

    def linear(self, layer: Linear) -> Scheme:
        algorithm = self._algorithm(layer.prefix)
        if self.exclusions.cover(layer.prefix):
            return dense_linear(layer)
        match algorithm:
            case "FP8":
                return _static_fp8(layer)
            case "FP8_PB_WO" | "FP8_BLOCK_SCALES":
                return fp8_linear(layer, Fp8Weights(serialized=True, block_size=[self.block, self.block]))
            case "MXFP8":
                return fp8_linear(layer, Fp8Weights(serialized=True, block_size=[1, 32], mxfp8=True))
            case "NVFP4":
                return _nvfp4(layer, self.group_size, awq=False)
            case "W4A16_NVFP4":
                return _nvfp4_weight_only(layer, self.group_size)
        return dense_linear(layer)

    def attention(self) -> Scheme | None:
        # The engine resolves an algorithm first, whatever it is asked about, and gives attention no name.
        self._algorithm("")
        return kv_cache_scheme("ModelOptFp8KVCacheMethod") if self.kv_cache else None

    def embedding(self, prefix: str) -> Scheme | None:
        algorithm = self._algorithm(prefix)
        if not self.exclusions.cover(prefix) and algorithm == "NVFP4":
            raise NotModelled(f"an NVFP4 embedding ({prefix}) of a ModelOpt mixed checkpoint")
        return None

    def _algorithm(self, prefix: str) -> str | None:
        """The `quant_algo` of a module: its own, its shards', or that of the first module in it."""
        spellings = _spellings(prefix)
        for name in spellings:
            if name in self.layers:
                return self._named(name)
        shards = self._of_shards(prefix)
        if shards is not None:
            return shards
        inside = (key for name in spellings for key in self.layers if key.startswith(f"{name}."))
        first = next(inside, None)
        return None if first is None else self._named(first)

    def _of_shards(self, prefix: str) -> str | None:
        parts = prefix.rsplit(".", 1)
        shards = (
            f"{name}.{shard}"
            for name in _spellings(parts[0])
            for shard in self.exclusions.fused.get(parts[-1], ())
        )
        algorithms = {self._named(shard) for shard in shards if shard in self.layers}
        if len(algorithms) > 1:
            raise Refused(f"mixed quant_algo within fused layer {prefix}: {sorted(algorithms)}")
        return algorithms.pop() if algorithms else None

    def _named(self, name: str) -> str:
        if "quant_algo" not in self.layers[name]:
            raise Refused(f"quantized_layers has no quant_algo for {name}")
        return str(self.layers[name]["quant_algo"]).upper()


@dataclass(frozen=True, slots=True)
class OnlineNvFp4:
    """An `NvFp4OnlineConfig`: experts become NVFP4, linears stay as the checkpoint has them."""

    weights: Fp8Weights
    left_dense: tuple[str, ...]
    fused: Mapping[str, tuple[str, ...]]

    def names_looked_up(self, prefix: str) -> tuple[str, ...]:
        return (prefix, *shard_names(prefix, self.fused))

    def leaves_dense(self, entry: str, name: str) -> bool:
        return any(covers(each, name) or fits(each, name) for each in both_spellings([entry]))

    def linear(self, layer: Linear) -> Scheme:
        exclusions = Exclusions(list(both_spellings(self.left_dense)), self.fused)
        if exclusions.cover(layer.prefix) or not self.weights.serialized:
            return dense_linear(layer)
        return fp8_linear(layer, self.weights)

    def attention(self) -> Scheme | None:
        return None

    def embedding(self, prefix: str) -> Scheme | None:
        return None


def read_fp8(config: Mapping[str, Any], surroundings: Surroundings) -> QuantConfig:
    """Read a config of method `modelopt_fp8` or `modelopt` (`ModelOptFp8Config.from_config`).

    Raises `Refused` where the engine does.
    """
    if config.get("quant_algo") is not None:
        algorithm, excluded = config["quant_algo"], config.get("ignore")
        kv_cache = _flat_kv_cache(config, other_schemes=False)
    else:
        section = _nested(config)
        algorithm, excluded = section.get("quant_algo"), section.get("exclude_modules")
        kv_cache = bool(section.get("kv_cache_quant_algo"))
    if algorithm != "FP8":
        raise Refused(f"modelopt_fp8 supports quant_algo FP8 only, not {algorithm!r}")
    require_capability("modelopt_fp8", 89, surroundings)
    return ModelOptFp8(Exclusions(excluded, surroundings.packed_modules_mapping), kv_cache)


def read_fp4(config: Mapping[str, Any], surroundings: Surroundings) -> QuantConfig:
    """Read a config of method `modelopt_fp4` (`ModelOptFp4Config.from_config`).

    A config whose `quant_method` is `fp8` is one of FP8 weights, whose experts
    become NVFP4 at load time. Raises `Refused` where the engine does.
    """
    if str(config.get("quant_method", "")).lower() == "fp8":
        require_capability("modelopt_fp4", 80, surroundings)
        return _online(config, surroundings)
    if config.get("quant_algo") is not None:
        algorithm, group_size = config["quant_algo"], _flat_group_size(config)
        excluded = optional(config, *surroundings.dialect.flat_fp4_lists, default=[])
    else:
        section = _nested(config)
        algorithm, group_size = section.get("quant_algo"), _common_group_size(config, section)
        excluded = section.get("exclude_modules", [])
    if algorithm not in FP4_ALGORITHMS:
        raise Refused(f"modelopt_fp4 supports the algorithms {', '.join(FP4_ALGORITHMS)}, not {algorithm!r}")
    if group_size is None or excluded is None:
        raise Refused("NVFP4 quantization requires group_size and exclude_modules")
    require_capability("modelopt_fp4", 80, surroundings)
    if algorithm == "FP8":
        return _dense()
    return ModelOptFp4(Exclusions(excluded, surroundings.packed_modules_mapping), algorithm, group_size)


def fp4_online(surroundings: Surroundings) -> QuantConfig:
    """`modelopt_fp4` for a checkpoint without a config (`for_online_weight_quantization`)."""
    require_capability("modelopt_fp4", 80, surroundings)
    return _dense()


def read_nvfp4_online(config: Mapping[str, Any], surroundings: Surroundings) -> QuantConfig:
    """Read a config for method `nvfp4_online` (`NvFp4OnlineConfig.from_config`).

    Raises `Refused` where the engine does.
    """
    online = _online(config, surroundings)
    require_capability("nvfp4_online", 100, surroundings)
    return online


def nvfp4_online(surroundings: Surroundings) -> QuantConfig:
    """`nvfp4_online` for a checkpoint without a config."""
    require_capability("nvfp4_online", 100, surroundings)
    return _dense()


def read_mixed(config: Mapping[str, Any], surroundings: Surroundings) -> QuantConfig:
    """Read a config of method `modelopt_mixed` (`ModelOptMixedPrecisionConfig.from_config`).

    Raises `Refused` where the engine does.
    """
    if config.get("quant_algo") is not None:
        section = config
        excluded = optional(config, "ignore", "exclude_modules", default=None)
        kv_cache = _flat_kv_cache(config, other_schemes=True)
    else:
        section = _nested(config)
        excluded = section.get("exclude_modules")
        kv_cache = bool(section.get("kv_cache_quant_algo"))
    if section.get("quant_algo") != "MIXED_PRECISION":
        raise Refused(f"modelopt_mixed supports MIXED_PRECISION only, not {section.get('quant_algo')!r}")
    layers = _quantized_layers(section.get("quantized_layers"), surroundings.dialect.own_blocks)
    exclusions = Exclusions(list(entries(excluded or [])), surroundings.packed_modules_mapping)
    block = _mixed_block(layers, surroundings.dialect.own_blocks)
    mixed = ModelOptMixed(exclusions, layers, _mixed_group_size(layers), block, kv_cache)
    require_capability("modelopt_mixed", 80, surroundings)
    return mixed


def fits(pattern: object, name: str) -> bool:
    """Whether a glob, read as the regex that the engine makes of it, fits a whole name or a part of it.

    Raises `Refused` for what is no pattern.
    """
    if not isinstance(pattern, str):
        raise Refused(f"a module's name was expected in an exclude list, not {pattern!r}")
    if _NOT_A_GLOB.search(pattern):
        raise NotModelled(f"the exclude list's pattern {pattern!r} in the dialect of `regex`")
    expression = pattern.replace(".", r"\.").replace("*", ".*")
    return any(regex(expression, part, "fullmatch") for part in (name, *name.split(".")))


def _dense() -> OnlineNvFp4:
    return OnlineNvFp4(Fp8Weights(serialized=False), (), {})


def _online(config: Mapping[str, Any], surroundings: Surroundings) -> OnlineNvFp4:
    method = str(config.get("quant_method", "")).lower()
    ignored = config.get("ignore") or config.get("ignored_layers") or config.get("modules_to_not_convert")
    weights = Fp8Weights(
        "fp8" in method,
        config.get("activation_scheme", "dynamic"),
        config.get("weight_block_size"),
        "mxfp8" in method,
    )
    excluded = names([ignored] if isinstance(ignored, str) else ignored)
    return OnlineNvFp4(weights, excluded, surroundings.packed_modules_mapping)


def _nested(config: Mapping[str, Any]) -> Mapping[str, Any]:
    section = config.get("quantization")
    if not isinstance(section, Mapping):
        raise Refused("no quant_algo in the quantization config, neither flat nor under quantization")
    return section


def _flat_kv_cache(config: Mapping[str, Any], *, other_schemes: bool) -> bool:
    """Whether attention gets scales; `other_schemes`: also for a `kv_cache_scheme` that is not FP8."""
    scheme = config.get("kv_cache_scheme")
    if not isinstance(scheme, Mapping):
        return bool(config.get("kv_cache_quant_algo"))
    return other_schemes or (scheme.get("type") == "float" and scheme.get("num_bits") == 8)


def _flat_group_size(config: Mapping[str, Any]) -> object:
    """The `group_size` of a flat config: its own, its first group's, or the 16 of NVFP4."""
    size = config.get("group_size")
    groups = config.get("config_groups")
    if size is None and groups:
        first = next(iter(groups.values())) if isinstance(groups, Mapping) else None
        weights = first.get("weights", {}) if isinstance(first, Mapping) else None
        if not isinstance(weights, Mapping):
            raise Refused("the first of config_groups has no weights to read a group_size from")
        size = weights.get("group_size")
    if size is None and "NVFP4" in str(config["quant_algo"]):
        return 16
    return size


def _common_group_size(config: Mapping[str, Any], section: Mapping[str, Any]) -> int:
    """The one `group_size` that a nested config has wherever it has any (`common_group_size`)."""
    groups = config.get("config_groups") or {}
    if not isinstance(groups, Mapping):
        raise Refused("config_groups is not an object")
    holders: list[Any] = [config, section]
    for group in groups.values():
        holders += [group, *group.values()] if isinstance(group, Mapping) else []
    found = (holder.get("group_size") for holder in holders if isinstance(holder, Mapping))
    sizes = {size for size in found if isinstance(size, int)}
    if len(sizes) != 1:
        raise Refused(f"a nested ModelOpt config must have one group_size, not {sorted(sizes) or 'none'}")
    return sizes.pop()


def _quantized_layers(layers: object, checked: bool) -> Mapping[str, Mapping[str, Any]]:
    if not layers or not isinstance(layers, Mapping):
        raise Refused("MIXED_PRECISION requires a non-empty quantized_layers map")
    for name, layer in layers.items():
        if not isinstance(layer, Mapping) or not isinstance(layer.get("quant_algo", ""), str):
            if not checked:
                raise NotModelled("quantized_layers that the build alone reads are not replayed")
            raise Refused(f"quantized_layers has no quant_algo for {name}")
    return layers


def _algorithm_of(layer: Mapping[str, Any]) -> str:
    return str(layer.get("quant_algo", "")).upper()


def _mixed_group_size(layers: Mapping[str, Mapping[str, Any]]) -> object:
    """The `group_size` of the first NVFP4 layer, which counts for all of them."""
    packed = (layer for layer in layers.values() if _algorithm_of(layer) in ("NVFP4", "W4A16_NVFP4"))
    size = next(packed, {}).get("group_size")
    return 16 if size is None else size


def _mixed_block(layers: Mapping[str, Mapping[str, Any]], own: bool) -> int:
    """The side of the FP8 blocks, on which all such layers must agree where it is their own."""
    if not own:
        if any(_algorithm_of(layer) == BLOCK_FP8_ALGORITHMS[1] for layer in layers.values()):
            raise NotModelled(f"{BLOCK_FP8_ALGORITHMS[1]} layers are not replayed in this version")
        return FP8_BLOCK
    sizes = {
        _whole(layer.get("group_size", 128))
        for layer in layers.values()
        if _algorithm_of(layer) in BLOCK_FP8_ALGORITHMS
    }
    if len(sizes) > 1:
        raise Refused(f"all block-FP8 layers must have one group_size, not {sorted(sizes)}")
    return sizes.pop() if sizes else FP8_BLOCK


def _whole(value: object) -> int:
    """A JSON value as Python's `int` reads it."""
    if not isinstance(value, str | int | float):
        raise Refused(f"group_size {value!r} is not a number")
    try:
        return int(value)
    except (ValueError, OverflowError) as error:
        raise Refused(f"group_size {value!r} is not a number") from error


def _spellings(prefix: str) -> tuple[str, ...]:
    """The names under which `quantized_layers` may hold a module of a draft."""
    if prefix.startswith("model."):
        return prefix, f"model.language_model.{prefix.removeprefix('model.')}"
    return (prefix,)


def _static_fp8(layer: Linear) -> Scheme:
    """FP8 with one scale for each logical matrix and its inputs (`ModelOptFp8LinearMethod`)."""
    parameters = (
        matrix("weight", layer, "float8_e4m3fn"),
        _shard_scalars("weight_scale", layer),
        _shard_scalars("input_scale", layer),
    )
    return Scheme("ModelOptFp8LinearMethod", second_loader(layer), parameters)


def _nvfp4(layer: Linear, group_size: object, *, awq: bool) -> Scheme:
    """NVFP4 for weights and inputs (`ModelOptFp4LinearMethod`)."""
    weight, weight_scale = _packed(layer, group_size)
    columns = layer.input_size_per_partition
    smoothing = Parameter(
        "pre_quant_scale", (columns,), "bfloat16", Placement(Kind.WEIGHT, output_dim=0, input_dim=0)
    )
    parameters = (
        weight,
        _shard_scalars("input_scale", layer)._replace(defaulted=True, default=1.0),
        *((smoothing,) if awq else ()),
        _shard_scalars("weight_scale_2", layer),
        weight_scale,
    )
    return Scheme("ModelOptFp4LinearMethod", second_loader(layer), parameters)


def _nvfp4_weight_only(layer: Linear, group_size: object) -> Scheme:
    """NVFP4 for weights alone (`ModelOptNvFp4A16LinearMethod`), which the second loader does not know."""
    weight, weight_scale = _packed(layer, group_size)
    parameters = (
        weight,
        _shard_scalars("weight_scale_2", layer),
        weight_scale,
        _shard_scalars("input_scale", layer)._replace(defaulted=True),
    )
    return Scheme("ModelOptNvFp4A16LinearMethod", "v1", parameters)


def _packed(layer: Linear, group_size: object) -> tuple[Parameter, Parameter]:
    """The weight, two numbers in a byte, and its scales by group."""
    rows, columns = layer.output_size_per_partition, layer.input_size_per_partition
    if columns % 16:
        raise Refused(f"NVFP4 wants input sizes that are multiples of 16; {layer.prefix} has {columns}")
    if not isinstance(group_size, int) or group_size <= 0:
        raise Refused(f"group_size {group_size!r} is not a number of weights")
    placement = Placement(Kind.WEIGHT, output_dim=0, input_dim=1)
    return (
        Parameter("weight", (rows, columns // 2), "uint8", placement),
        Parameter("weight_scale", (rows, columns // group_size), "float8_e4m3fn", placement),
    )


def _shard_scalars(name: str, layer: Linear) -> Parameter:
    scales = shard_scales(name, layer)
    return scales._replace(placement=scales.placement._replace(scalar_per_shard=True))
