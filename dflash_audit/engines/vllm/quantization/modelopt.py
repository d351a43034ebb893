"""ModelOpt checkpoints: FP8 by tensor, row or block, NVFP4, MXFP8, and a mixture of them.

Its lists of modules are the only ones that vLLM rewrites for a draft: below `model.`, and
counted on from the target's layers.

Source: vLLM 0.33.0 `model_executor/layers/quantization/modelopt.py`, and
`map_draft_quant_config` in `model_executor/models/utils.py`.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Final

from dflash_audit.engines.vllm.quantization.config import QuantConfig, Surroundings
from dflash_audit.engines.vllm.quantization.dense import cache_scales, dense_linear
from dflash_audit.engines.vllm.quantization.experts import (
    Experts,
    both,
    dense_experts,
    matrices,
    scheme,
    tensor_scales,
)
from dflash_audit.quantization.fp8 import matrix, shard_scales
from dflash_audit.refusal import NotModelled, Refused
from dflash_audit.tree import FUSED, Kind, Linear, Parameter, Placement, Scheme

NAME: Final = "ModelOptLinearMethod"

FP8_ALGORITHMS: Final = ("FP8", "FP8_PER_CHANNEL_PER_TOKEN", "FP8_PB_WO")
FP4_ALGORITHMS: Final = ("NVFP4", "W4A16_NVFP4")
ALGORITHMS: Final = (*FP8_ALGORITHMS, *FP4_ALGORITHMS, "MXFP8", "MIXED_PRECISION")
EXPERT_ALGORITHMS: Final = ("FP8", *FP4_ALGORITHMS, "MXFP8")
BLOCK_ALGORITHMS: Final = ("FP8_PB_WO", "FP8_BLOCK_SCALES")

FIRST_NAMES: Final = tuple(
    (re.compile(rf"(?<![A-Za-z0-9_]){theirs}(?=\.|\*|$)"), ours)
    for theirs, ours in (
        ("midlayer", "layers.0"),
        (r"encoder\.output_norm_enc", "hidden_norm"),
        (r"encoder\.fc", "fc"),
    )
)
"""Source: `DFlashQwen3Model.hf_to_vllm_mapper`."""


def runtime_names(entry: str, surroundings: Surroundings) -> tuple[str, ...]:
    """What an entry of the config's lists stands for once it is rewritten for the draft."""
    if not surroundings.shifted:
        return (entry,)
    return tuple(
        _rooted(_first_name(name), surroundings) for once in _halves(entry) for name in _halves(once)
    )


def _halves(entry: str) -> tuple[str, ...]:
    """`module*` stands for a module and for all that is below it."""
    if len(entry) > 1 and entry.endswith("*") and not entry.endswith(".*"):
        return entry[:-1], f"{entry[:-1]}.*"
    return (entry,)


def _first_name(name: str) -> str:
    for pattern, ours in FIRST_NAMES:
        name = pattern.sub(ours, name)
    return name


def _rooted(name: str, surroundings: Surroundings) -> str:
    at = surroundings.first_layer
    if at:
        # The highest first, so that a number that was counted on is not counted on again.
        for layer in reversed(range(surroundings.num_layers)):
            name = re.sub(
                rf"^((?:model\.)?\*?)layers\.{layer}(?=\.|\*|$)", rf"\g<1>layers.{at + layer}", name
            )
    return re.sub(r"^(?!\*|model(?:\.|\*|$))", "model.", name)


@dataclass(frozen=True, slots=True)
class _Excluding:
    """What the methods share: `excluded` are the entries as they are written."""

    excluded: tuple[str, ...]
    surroundings: Surroundings

    @property
    def left_dense(self) -> tuple[str, ...]:
        return self.excluded

    def names_looked_up(self, prefix: str) -> tuple[str, ...]:
        return (prefix,)

    def leaves_dense(self, entry: str, name: str) -> bool:
        return any(
            each in name or fnmatchcase(name, each) for each in runtime_names(entry, self.surroundings)
        )

    def excludes(self, prefix: str) -> bool:
        """Whether an entry is a part of the name, or a pattern for it (`is_layer_excluded`)."""
        return any(self.leaves_dense(entry, prefix) for entry in self.excluded)

    def embedding(self, prefix: str) -> Scheme | None:
        return None


@dataclass(frozen=True, slots=True)
class ModelOpt(_Excluding):
    """A config of one algorithm for all layers."""

    algorithm: str
    group_size: int

    def linear(self, layer: Linear) -> Scheme:
        if self.excludes(layer.prefix):
            return dense_linear(layer)
        return _linear(layer, self.algorithm, self.group_size)

    def experts(self, layer: Experts) -> Scheme:
        if self.excludes(layer.prefix):
            return dense_experts(layer)
        if self.algorithm in FP8_ALGORITHMS:
            return _fp8_experts(layer)
        return _experts(layer, self.algorithm, self.group_size)

    def head(self, layer: Linear) -> Scheme | None:
        return self.linear(layer)

    def attention(self) -> Scheme | None:
        return cache_scales("ModelOptKVCacheMethod")


@dataclass(frozen=True, slots=True)
class ModelOptMixed(_Excluding):
    """A `ModelOptMixedPrecisionConfig`; `layers`: rewritten module -> its algorithm, None without one."""

    layers: Mapping[str, str | None]
    group_size: int
    kv_cache: bool

    def linear(self, layer: Linear) -> Scheme:
        if self.excludes(layer.prefix):
            return dense_linear(layer)
        algorithm = self._algorithm(layer.prefix)
        if algorithm is None or algorithm not in ALGORITHMS[:-1]:
            return dense_linear(layer)
        return _linear(layer, algorithm, self.group_size)

    def experts(self, layer: Experts) -> Scheme:
        if self.excludes(layer.prefix):
            return dense_experts(layer)
        algorithm = self._algorithm(layer.prefix) or self._beside(layer.prefix)
        if algorithm in BLOCK_ALGORITHMS:
            raise NotModelled("experts of FP8 in blocks beside other layers are not modelled for vLLM")
        if algorithm is None or algorithm not in EXPERT_ALGORITHMS:
            return dense_experts(layer)
        return _experts(layer, algorithm, self.group_size)

    def head(self, layer: Linear) -> Scheme | None:
        return self.linear(layer)

    def attention(self) -> Scheme | None:
        return cache_scales("ModelOptKVCacheMethod") if self.kv_cache else None

    def _algorithm(self, prefix: str) -> str | None:
        """`_resolve_quant_algo`: the module's own, that of one inside it, or its shards'."""
        if prefix in self.layers:
            return self._said(prefix)
        inside = next((name for name in self.layers if name.startswith(f"{prefix}.")), None)
        if inside is not None:
            return self._said(inside)
        parent, _, last = prefix.rpartition(".")
        shards = [f"{parent}.{shard}" for shard in FUSED.get(last, ())]
        found = {self._said(shard) for shard in shards if shard in self.layers}
        if len(found) > 1:
            raise Refused(f"mixed quant_algo within fused layer {prefix}: {sorted(found)}")
        return found.pop() if found else None

    def _beside(self, prefix: str) -> str | None:
        """The algorithm of the first module that lies where the experts do."""
        parent = prefix.removesuffix("experts")
        return next((self._said(name) for name in self.layers if name.startswith(parent)), None)

    def _said(self, name: str) -> str:
        """The algorithm of an entry, which nobody misses before a layer asks for it."""
        said = self.layers[name]
        if said is None:
            raise Refused(f"quantized_layers has no quant_algo for {name}")
        return said


def read_fp8(config: Mapping[str, Any], surroundings: Surroundings) -> QuantConfig:
    """Read a config of method `modelopt` (`ModelOptFp8Config.from_config`)."""
    return _one(config, surroundings, FP8_ALGORITHMS)


def read_fp4(config: Mapping[str, Any], surroundings: Surroundings) -> QuantConfig:
    """Read a config of method `modelopt_fp4` (`ModelOptNvFp4Config.from_config`)."""
    read = _one(config, surroundings, FP4_ALGORITHMS)
    _need(config, "group_size", "kv_cache_quant_algo", "exclude_modules")
    groups = config.get("config_groups")
    weights_alone = (
        read.algorithm == "NVFP4"
        and isinstance(groups, Mapping)
        and bool(groups)
        and all(isinstance(g, Mapping) and g.get("input_activations") is None for g in groups.values())
    )
    return replace(read, algorithm="W4A16_NVFP4") if weights_alone else read


def read_mxfp8(config: Mapping[str, Any], surroundings: Surroundings) -> QuantConfig:
    """Read a config of method `modelopt_mxfp8`, or of `mxfp8` (`ModelOptMxFp8Config.from_config`)."""
    if "quantization" not in config and not config.get("quant_algo"):
        config = {
            "quantization": {
                "quant_algo": "MXFP8",
                "kv_cache_quant_algo": config.get("kv_cache_quant_algo"),
                "exclude_modules": config.get("ignored_layers", []) or [],
            }
        }
    read = _one(config, surroundings, ("MXFP8",))
    _need(config, "kv_cache_quant_algo", "exclude_modules")
    return read


def read_mixed(config: Mapping[str, Any], surroundings: Surroundings) -> QuantConfig:
    """Read a config of method `modelopt_mixed` (`ModelOptMixedPrecisionConfig.from_config`)."""
    algorithm, excluded, group_size, kv_cache = _common(config)
    del algorithm  # not looked at again: the layers name their own
    section = config.get("quantization", config)
    layers = section.get("quantized_layers", {}) if isinstance(section, Mapping) else {}
    if not layers or not isinstance(layers, Mapping):
        raise Refused("MIXED_PRECISION requires quantized_layers")
    algorithms = {}
    for name, entry in layers.items():
        said = entry.get("quant_algo", "") if isinstance(entry, Mapping) else None
        if not isinstance(said, str):
            raise Refused(f"quantized_layers has no quant_algo for {name}")
        algorithms[name] = said.upper()
    _check_block_sizes(layers, algorithms)
    if group_size is None:
        sizes = [layers[n].get("group_size", 16) for n, said in algorithms.items() if said in FP4_ALGORITHMS]
        group_size = sizes[0] if sizes and sizes[0] is not None else 16
    renamed = {
        new: said if "quant_algo" in layers[name] else None
        for name, said in algorithms.items()
        for new in _renamed(name, surroundings)
    }
    return ModelOptMixed(excluded, surroundings, renamed, group_size, kv_cache)


def _renamed(name: str, surroundings: Surroundings) -> Iterator[str]:
    yield _rooted(_first_name(name), surroundings) if surroundings.shifted else name


def _check_block_sizes(layers: Mapping[str, Any], algorithms: Mapping[str, str]) -> None:
    sizes = {layers[n].get("group_size", 128) for n, said in algorithms.items() if said in BLOCK_ALGORITHMS}
    if len(sizes) > 1:
        raise Refused(f"all layers of FP8 in blocks must have one group_size, got {sorted(sizes)}")


def _one(config: Mapping[str, Any], surroundings: Surroundings, supported: tuple[str, ...]) -> ModelOpt:
    algorithm, excluded, group_size, _ = _common(config)
    if algorithm not in supported:
        raise Refused(f"unsupported ModelOpt quant_algo {algorithm}, only {', '.join(supported)}")
    return ModelOpt(excluded, surroundings, algorithm, 16 if group_size is None else group_size)


def _need(config: Mapping[str, Any], *fields: str) -> None:
    section = config.get("quantization")
    missing = [field for field in fields if isinstance(section, Mapping) and field not in section]
    if missing:
        raise Refused(f"the quantization config requires the fields {', '.join(missing)}")


def _common(config: Mapping[str, Any]) -> tuple[str, tuple[str, ...], int | None, bool]:
    """Algorithm, exclusions, group size, and whether the KV cache is quantized (`from_config`)."""
    if "quantization" in config:
        section = config["quantization"]
        if not isinstance(section, Mapping):
            raise Refused("'quantization' must be an object")
        kv_cache = section.get("kv_cache_quant_algo")
        excluded = section.get("exclude_modules", [])
    else:
        section, scheme = config, config.get("kv_cache_scheme")
        fp8 = isinstance(scheme, Mapping) and scheme.get("type") == "float" and scheme.get("num_bits") == 8
        kv_cache = "FP8" if fp8 else None
        excluded = config.get("ignore", config.get("exclude_modules", []))
    algorithm = section.get("quant_algo")
    if not algorithm:
        raise Refused("missing 'quant_algo' in quantization config")
    if kv_cache is not None and not isinstance(kv_cache, str):
        raise Refused(f"kv_cache_quant_algo must be a string, got {kv_cache!r}")
    if not isinstance(excluded, list) or not all(isinstance(entry, str) for entry in excluded):
        raise Refused(f"the modules to exclude must be a list of names, got {excluded!r}")
    algorithm = str(algorithm).upper()
    if algorithm not in ALGORITHMS:
        raise Refused(f"ModelOpt's {algorithm} is not supported, only {', '.join(ALGORITHMS)}")
    return algorithm, tuple(excluded), _group_size(section.get("group_size")), bool(kv_cache)


def _group_size(value: Any) -> int | None:
    if value is None:
        return None
    try:
        return int(value)
    except (TypeError, ValueError) as error:
        raise Refused(f"group_size must be an integer, got {value!r}") from error


def _linear(layer: Linear, algorithm: str, group_size: int) -> Scheme:
    """`ModelOptLinearMethod` of an algorithm."""
    rows, columns = layer.output_size_per_partition, layer.input_size_per_partition
    if algorithm == "FP8":
        scales = [shard_scales(name, layer) for name in ("weight_scale", "input_scale")]
        return Scheme(NAME, "v2", (matrix("weight", layer, "float8_e4m3fn"), *scales))
    if algorithm == "FP8_PER_CHANNEL_PER_TOKEN":
        scale = Parameter("weight_scale", (rows,), "float32", Placement(Kind.CHANNEL_SCALE, output_dim=0))
        return Scheme(NAME, "v2", (matrix("weight", layer, "float8_e4m3fn"), scale))
    if algorithm == "FP8_PB_WO":
        return _blocks(layer)
    if algorithm == "MXFP8":
        if columns % 32:
            raise Refused(f"MXFP8 requires an input size divisible by 32, got {columns}")
        at = Placement(Kind.WEIGHT, output_dim=0, input_dim=1)
        scale = Parameter("weight_scale", (rows, columns // 32), "uint8", at)
        return Scheme(NAME, "v2", (matrix("weight", layer, "float8_e4m3fn"), scale), (1, 32))
    return _nvfp4(layer, algorithm, group_size)


def _blocks(layer: Linear) -> Scheme:
    rows, columns = layer.output_size_per_partition, layer.input_size_per_partition
    if columns % 128:
        raise Refused(f"FP8_PB_WO requires inputs divisible by 128, got {columns}")
    at = Placement(Kind.BLOCK_SCALE, output_dim=0, input_dim=2)
    scale = Parameter("weight_scale", (-(-rows // 128), 1, columns // 128, 1), "float32", at)
    return Scheme(NAME, "v2", (matrix("weight", layer, "float8_e4m3fn"), scale), (128, 128))


def _nvfp4(layer: Linear, algorithm: str, group_size: int) -> Scheme:
    rows, columns = layer.output_size_per_partition, layer.input_size_per_partition
    if columns % 16:
        raise Refused("NVFP4 takes no layer whose input size is not a multiple of 16")
    if group_size == 0:
        raise Refused("group_size must not be 0")
    at = Placement(Kind.WEIGHT, output_dim=0, input_dim=1)
    parameters = [
        Parameter("weight", (rows, columns // 2), "uint8", at),
        shard_scales("weight_scale_2", layer),
        Parameter("weight_scale", (rows, columns // group_size), "float8_e4m3fn", at),
    ]
    if algorithm == "NVFP4":
        parameters.append(shard_scales("input_scale", layer))
    else:
        # Registered for older checkpoints alone, in the model's dtype, and dropped after the load.
        parameters.append(shard_scales("input_scale", layer)._replace(dtype="bfloat16", unread=True))
    return Scheme(NAME, "v2", tuple(parameters))


def _experts(layer: Experts, algorithm: str, group_size: int) -> Scheme:
    """The method of one of `EXPERT_ALGORITHMS`."""
    if algorithm == "FP8":
        return _fp8_experts(layer)
    return _mxfp8_experts(layer) if algorithm == "MXFP8" else _nvfp4_experts(layer, group_size)


def _fp8_experts(layer: Experts) -> Scheme:
    """`ModelOptFp8MoEMethod`, whose scales are those of FP8 by tensor whatever the algorithm."""
    return scheme(
        "ModelOptFp8MoEMethod",
        matrices("weight", layer, "float8_e4m3fn"),
        tensor_scales("weight_scale", layer),
        both("input_scale", layer, (), (), "float32"),
    )


def _nvfp4_experts(layer: Experts, group_size: int) -> Scheme:
    """`ModelOptNvFp4FusedMoE`."""
    if group_size == 0:
        raise Refused("group_size must not be 0")
    rows, hidden, inner = 2 * layer.inner, layer.hidden, layer.inner
    first, second = (rows, hidden // group_size), (hidden, inner // group_size)
    return scheme(
        "ModelOptNvFp4FusedMoE",
        both("weight", layer, (rows, hidden // 2), (hidden, inner // 2), "uint8"),
        both("weight_scale", layer, first, second, "float8_e4m3fn"),
        tensor_scales("weight_scale_2", layer),
        tensor_scales("input_scale", layer),
    )


def _mxfp8_experts(layer: Experts) -> Scheme:
    """`ModelOptMxFp8FusedMoE`."""
    if layer.hidden % 32 or layer.inner % 32:
        raise Refused(f"MXFP8 experts want sizes divisible by 32, got {layer.hidden} and {layer.inner}")
    first, second = (2 * layer.inner, layer.hidden // 32), (layer.hidden, layer.inner // 32)
    return scheme(
        "ModelOptMxFp8FusedMoE",
        matrices("weight", layer, "float8_e4m3fn"),
        both("weight_scale", layer, first, second, "uint8"),
    )
