"""FP8 weights: by tensor, by block, MXFP8, and dense weights that become FP8 after loading.

Source: SGLang 0.5.23 `srt/layers/quantization/fp8.py` (`Fp8Config`,
`Fp8LinearMethod`), `w4afp8.py` (`W4AFp8Config`) and `utils.py`
(`is_layer_skipped`). The forms without a config of their own are those of
`get_quant_config` in `srt/model_loader/weight_utils.py`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from dflash_audit.quantization.config import QuantConfig, Surroundings
from dflash_audit.quantization.keys import optional, required
from dflash_audit.quantization.kv_cache import kv_cache_scheme
from dflash_audit.quantization.unquantized import dense_linear
from dflash_audit.refusal import Refused
from dflash_audit.tree import Kind, Linear, Parameter, Placement, Scheme

FALLBACK_SHARDS: Final[Mapping[str, tuple[str, ...]]] = {
    "qkv_proj": ("q_proj", "k_proj", "v_proj"),
    "gate_up_proj": ("gate_proj", "up_proj"),
}
"""Fused module -> shards, for a draft class without a mapping.

Source: SGLang 0.5.23 `srt/layers/quantization/utils.py` (`_FALLBACK_FUSED_SHARDS`).
"""

IGNORE_KEYS: Final = ("ignored_layers", "modules_to_not_convert")
"""The keys of an ignore list; the first that is there counts, be it empty or null."""


@dataclass(frozen=True, slots=True)
class Fp8Weights:
    """What `Fp8LinearMethod` reads off a config.

    `serialized`: the checkpoint holds FP8 numbers, not dense ones. `activation`
    and `block_size` are the JSON values of `activation_scheme` and
    `weight_block_size` (None without blocks).
    """

    serialized: bool
    activation: object = "dynamic"
    block_size: object = None
    mxfp8: bool = False


@dataclass(frozen=True, slots=True)
class Fp8:
    """An `Fp8Config`, or (without a KV cache) a `W4AFp8Config`, that the engine has accepted."""

    weights: Fp8Weights
    left_dense: tuple[str, ...]
    fused: Mapping[str, tuple[str, ...]]
    kv_cache: bool = True

    def names_looked_up(self, prefix: str) -> tuple[str, ...]:
        return shard_names(prefix, self.fused)

    def leaves_dense(self, entry: str, name: str) -> bool:
        return any(covers(spelling, name) for spelling in both_spellings([entry]))

    def linear(self, layer: Linear) -> Scheme:
        if skipped(layer.prefix, both_spellings(self.left_dense), self.fused):
            return dense_linear(layer)
        return fp8_linear(layer, self.weights)

    def attention(self) -> Scheme | None:
        return kv_cache_scheme("Fp8KVCacheMethod") if self.kv_cache else None

    def embedding(self, prefix: str) -> Scheme | None:
        return None


def read(config: Mapping[str, Any], surroundings: Surroundings) -> QuantConfig:
    """Read a quantization config of method `fp8` or `mxfp8` (`Fp8Config.from_config`).

    Raises `Refused` where the engine does.
    """
    method = method_of(config)
    mxfp8 = "mxfp8" in method
    activation = required(config, "activation_scheme")
    # The specification of MXFP8 fixes its block, whatever the config says.
    block_size = [1, 32] if mxfp8 else config.get("weight_block_size")
    # The engine looks for the letters as they are spelled: a method "FP8" counts as dense weights.
    weights = Fp8Weights("fp8" in method, activation, block_size, mxfp8)
    _check(weights)
    ignored = names(optional(config, *IGNORE_KEYS, default=None))
    _check_card(weights, surroundings)
    return Fp8(weights, ignored, surroundings.packed_modules_mapping)


def online(surroundings: Surroundings) -> QuantConfig:
    """`fp8` for a checkpoint without a config: dense weights, quantized after loading."""
    weights = Fp8Weights(serialized=False)
    _check_card(weights, surroundings)
    return Fp8(weights, (), {})


def mxfp8_online(surroundings: Surroundings) -> QuantConfig:
    """`mxfp8` for a checkpoint without a config: dense weights, quantized after loading."""
    weights = Fp8Weights(serialized=False, block_size=[1, 32], mxfp8=True)
    _check_card(weights, surroundings)
    return Fp8(weights, (), {})


def read_w4afp8(config: Mapping[str, Any], surroundings: Surroundings) -> QuantConfig:
    """Read a config of method `w4afp8`: its 4-bit experts aside, FP8 in blocks, nothing ignored.

    Raises `Refused` where the engine does.
    """
    return _w4afp8("fp8" in method_of(config), surroundings)


def w4afp8_online(surroundings: Surroundings) -> QuantConfig:
    """`w4afp8` for a checkpoint that names it outside `config.json`; its weights are FP8."""
    return _w4afp8(True, surroundings)


def _w4afp8(serialized: bool, surroundings: Surroundings) -> QuantConfig:
    require_capability("w4afp8", 90, surroundings)
    return Fp8(Fp8Weights(serialized, block_size=[128, 128]), (), {}, kv_cache=False)


def method_of(config: Mapping[str, Any]) -> str:
    """The config's `quant_method`, which the engine takes as it is spelled."""
    method = required(config, "quant_method")
    if not isinstance(method, str):
        raise Refused(f"quant_method must be a string, not {method!r}")
    return method


def require_capability(method: str, minimum: int, surroundings: Surroundings) -> None:
    """Refuse a card that cannot run a method.

    Source: SGLang 0.5.23 `srt/model_loader/loader.py` (`_get_quantization_config`),
    with each config's `get_min_capability`.
    """
    if surroundings.capability < minimum:
        raise Refused(
            f"quantization method {method} needs compute capability {minimum}, "
            f"the GPU has {surroundings.capability}"
        )


def entries(value: object) -> tuple[object, ...]:
    """What a loop over a JSON value visits: a text's letters and an object's keys too.

    Raises `Refused` for a value that no loop takes.
    """
    if isinstance(value, list | str | Mapping):
        return tuple(value)
    raise Refused(f"a list of modules was expected, not {value!r}")


def names(ignored: object) -> tuple[str, ...]:
    """The entries of an ignore list, where any other type than text is `Refused`; `()` for null."""
    return tuple(_text(entry) for entry in entries(ignored or []))


def both_spellings(ignored: Iterable[str]) -> tuple[str, ...]:
    """Every entry of an ignore list without and with a leading `model.`."""
    bare = [entry.removeprefix("model.") for entry in ignored]
    return tuple(spelling for name in bare for spelling in (name, f"model.{name}"))


def skipped(prefix: str, ignored: Iterable[object], fused: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether an ignore list leaves a linear dense (`is_layer_skipped`).

    Of a fused module the shards are looked up, and all must agree, else
    `Refused`. No module of a draft is an expert, so the rules for those are
    left out.
    """
    kept = {any(covers(entry, name) for entry in ignored) for name in shard_names(prefix, fused)}
    if len(kept) > 1:
        raise Refused(f"some but not all shards of {prefix} are quantized")
    return kept == {True}


def shard_names(prefix: str, fused: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The names of a fused module's shards, or the name itself of one that is not fused."""
    last = prefix.split(".")[-1]
    shards = (fused if last in fused else FALLBACK_SHARDS).get(last, (last,))
    return tuple(prefix.replace(last, shard) for shard in shards)


def covers(entry: object, name: str) -> bool:
    """Whether an entry of an ignore list is a run of whole parts of a dotted name."""
    return f".{_text(entry).rstrip('.')}." in f".{name.rstrip('.')}."


def fp8_linear(layer: Linear, weights: Fp8Weights) -> Scheme:
    """The scheme of an FP8 linear (`Fp8LinearMethod.create_weights`).

    Raises `Refused` where its sizes do not fit the blocks.
    """
    block = None
    if weights.mxfp8 or weights.block_size is not None:
        block = _block(weights.block_size)
        _check_partitions(layer, block)
    parameters = [matrix("weight", layer, "float8_e4m3fn" if weights.serialized else "bfloat16")]
    if weights.serialized and block is None:
        names = ["weight_scale", "input_scale"] if weights.activation == "static" else ["weight_scale"]
        parameters += [shard_scales(name, layer) for name in names]
    elif weights.serialized and block is not None:
        if weights.activation != "dynamic":
            raise Refused(f"FP8 in blocks wants dynamic activations, not {weights.activation!r}")
        parameters.append(block_scales(layer, block, weights.mxfp8))
    return Scheme("Fp8LinearMethod", second_loader(layer), tuple(parameters), block)


def matrix(name: str, layer: Linear, dtype: str) -> Parameter:
    """A matrix with one number for each weight of the layer."""
    shape = (layer.output_size_per_partition, layer.input_size_per_partition)
    return Parameter(name, shape, dtype, Placement(Kind.WEIGHT, output_dim=0, input_dim=1))


def shard_scales(name: str, layer: Linear) -> Parameter:
    """One scale for each logical matrix of the layer."""
    return Parameter(name, (len(layer.output_partition_sizes),), "float32", Placement(Kind.TENSOR_SCALE))


def second_loader(layer: Linear) -> Literal["v1", "v2"]:
    """The loader of a method that asks for the second one, which a replicated linear lacks.

    Source: SGLang 0.5.23 `srt/layers/linear.py` (`ReplicatedLinear`, `WEIGHT_LOADER_V2_SUPPORTED`).
    """
    return "v1" if layer.module_class == "ReplicatedLinear" else "v2"


def _check(weights: Fp8Weights) -> None:
    if weights.activation not in ("static", "dynamic"):
        raise Refused(f"unsupported activation scheme {weights.activation!r}")
    if weights.block_size is None:
        return
    if not weights.serialized:
        raise Refused("weight_block_size is for checkpoints that hold FP8 weights")
    if not isinstance(weights.block_size, list | str | Mapping) or len(weights.block_size) != 2:
        raise Refused(f"weight_block_size must have 2 dimensions, not {weights.block_size!r}")
    if weights.activation != "dynamic":
        raise Refused(f"FP8 in blocks wants dynamic activations, not {weights.activation!r}")


def _check_card(weights: Fp8Weights, surroundings: Surroundings) -> None:
    if weights.mxfp8:
        require_capability("mxfp8", 100, surroundings)
    else:
        require_capability("fp8", 80, surroundings)


def _text(entry: object) -> str:
    if not isinstance(entry, str):
        raise Refused(f"a module's name was expected in an ignore list, not {entry!r}")
    return entry


def _block(value: object) -> tuple[int, int]:
    """The rows and columns of a block, where a layer needs them."""
    match value:
        case [int(rows), int(columns)] if rows and columns:
            return int(rows), int(columns)
    raise Refused(f"weight_block_size {value!r} is not two numbers of rows and columns")


def _check_partitions(layer: Linear, block: tuple[int, int]) -> None:
    rows, columns = block
    if layer.input_size_per_partition != layer.input_size and layer.input_size_per_partition % columns:
        raise Refused(
            f"input_size_per_partition = {layer.input_size_per_partition} of {layer.prefix} "
            f"is not divisible by block_k = {columns}"
        )
    split = layer.output_size_per_partition != layer.output_size
    for size in layer.output_partition_sizes:
        if (split or len(layer.output_partition_sizes) > 1) and size % rows:
            raise Refused(
                f"output_partition_size = {size} of {layer.prefix} is not divisible by block_n = {rows}"
            )


def block_scales(layer: Linear, block: tuple[int, int], mxfp8: bool = False) -> Parameter:
    """One scale for each block, as in MXFP8 with an exponent alone for a scale."""
    rows, columns = block
    shape = (
        (layer.output_size_per_partition + rows - 1) // rows,
        (layer.input_size_per_partition + columns - 1) // columns,
    )
    if min(shape) < 0:
        raise Refused(f"weight_block_size {list(block)} gives {layer.prefix} scales of shape {shape}")
    placement = Placement(Kind.BLOCK_SCALE, output_dim=0, input_dim=1, scale_per_row=mxfp8)
    return Parameter("weight_scale_inv", shape, "uint8" if mxfp8 else "float32", placement)
