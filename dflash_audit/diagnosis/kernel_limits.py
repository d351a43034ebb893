"""What the kernels behind a quantized linear demand of its shape, beyond what the load checks.

An engine meets these after the load: while it lays the weights out for the
kernel, or at the first forward. Each limit names the line of SGLang 0.5.23 that
says so; those of Marlin and of `torch._scaled_mm` were met on an H200.
"""

from collections.abc import Callable, Mapping
from typing import Final, Literal, NamedTuple

from dflash_audit.tree import Kind, Linear, Module, Parameter, Scheme

Stage = Literal["after the load", "at its first forward"]


class Limit(NamedTuple):
    """Why a kernel does not take a layer, when that shows, and the engine's line that says so."""

    reason: str
    stage: Stage
    source: str


class Layer(NamedTuple):
    """A quantized linear of one rank, and the card's compute capability times ten."""

    linear: Linear
    scheme: Scheme
    capability: int

    @property
    def outputs(self) -> int:
        return self.linear.output_size_per_partition

    @property
    def inputs(self) -> int:
        return self.linear.input_size_per_partition

    @property
    def row_parallel(self) -> bool:
        return self.linear.input_size != self.linear.input_size_per_partition

    def parameter(self, name: str) -> Parameter | None:
        return next((p for p in self.scheme.parameters if p.name == name), None)

    @property
    def scale(self) -> Parameter | None:
        return self.parameter("weight_scale") or self.parameter("weight_scale_inv")

    @property
    def scale_kind(self) -> Kind | None:
        return self.scale.placement.kind if self.scale else None


def limit(module: Module, capability: int) -> Limit | None:
    """The first limit of its kernel that a built linear breaks on a card of this capability (times ten)."""
    if module.linear is None or module.scheme is None or module.scheme.name not in KERNELS:
        return None
    layer = Layer(module.linear, module.scheme, capability)
    if layer.outputs == 0 or layer.inputs == 0:
        return None  # no kernel is started for it
    return KERNELS[module.scheme.name](layer)


REPACK: Final = "kernels/jit/csrc/gemm/marlin/gptq_marlin_repack.cuh"
MARLIN: Final = "kernels/jit/csrc/gemm/marlin/gptq_marlin.cuh"
QUANTIZATION: Final = "srt/layers/quantization"

TILES: Final = ((128, 64), (64, 128))
"""(outputs, inputs) of Marlin's thread blocks, one of which must divide a layer
(`small_batch_thread_configs`, `large_batch_thread_configs`)."""

INTEGER_GROUPS: Final = (32, 64, 128)
FP8_GROUPS: Final = (128,)
"""Groups that Marlin has kernels for, beside one over all inputs (`COMMON_GET_IF`, `BIGGROUP_GET_IF`)."""


def _marlin_shape(layer: Layer) -> Limit | None:
    if layer.outputs % 64:
        return Limit(f"Marlin packs outputs by 64, not {layer.outputs}", "after the load", f"{REPACK}:311")
    if layer.inputs % 16:
        return Limit(f"Marlin packs inputs by 16, not {layer.inputs}", "after the load", f"{REPACK}:305")
    if any(layer.outputs % n == 0 and layer.inputs % k == 0 for n, k in TILES):
        return None
    reason = (
        "Marlin wants outputs by 64 and inputs by 128, or outputs by 128 and inputs by 64,"
        f" not {layer.outputs} and {layer.inputs}"
    )
    return Limit(reason, "at its first forward", f"{MARLIN}:669")


def _marlin_groups(layer: Layer, groups: int, sizes: tuple[int, ...]) -> Limit | None:
    if groups <= 1:
        return None
    size, rest = divmod(layer.inputs, groups)
    if rest == 0 and size in sizes:
        return None
    listed = ", ".join(map(str, sizes))
    reason = (
        f"Marlin has kernels for groups of {listed} inputs or one over all,"
        f" not for {groups} groups over {layer.inputs}"
    )
    return Limit(reason, "at its first forward", f"{MARLIN}:669")


def _wna16(layer: Layer) -> Limit | None:
    """`CompressedTensorsWNA16`, which does not heed what `check_marlin_supports_shape` answers."""
    shape = _marlin_shape(layer)
    packed, scale = layer.parameter("weight_packed"), layer.scale
    assert packed is not None and scale is not None
    zeros, ordered = layer.parameter("weight_zero_point"), layer.parameter("weight_g_idx")
    eight_bits = packed.placement.packed_factor == 4
    reason = None
    if zeros and (eight_bits or (ordered and layer.row_parallel)):
        what = "8-bit weights" if eight_bits else "weights in activation order over several ranks"
        reason = f"Marlin has no kernel for {what} with zero points"
    if shape or reason:
        return shape or Limit(str(reason), "at its first forward", f"{MARLIN}:669")
    if ordered and layer.row_parallel:
        return None  # a kernel of its own, for groups of any size
    if ordered and scale.shape[1] == 1:
        return Limit("activation order wants more than one group", "at its first forward", f"{MARLIN}:933")
    return _marlin_groups(layer, scale.shape[1], INTEGER_GROUPS)


def _marlin_fp8(layer: Layer) -> Limit | None:
    """FP8 weights that Marlin widens: `prepare_fp8_layer_for_marlin`."""
    shape, scale = _marlin_shape(layer), layer.scale
    if shape or scale is None or scale.placement.kind is not Kind.BLOCK_SCALE:
        return shape
    return _marlin_groups(layer, scale.shape[1], FP8_GROUPS)


def _ct_fp8(layer: Layer) -> Limit | None:
    """`CompressedTensorsW8A8Fp8`: one scale for a weight goes to `torch._scaled_mm`."""
    if layer.scale_kind is Kind.BLOCK_SCALE:
        return _blocks(layer)
    if layer.scale_kind is not Kind.TENSOR_SCALE or (layer.outputs % 16 == 0 and layer.inputs % 16 == 0):
        return None
    line = 2758 if layer.parameter("input_scale") else 2456
    reason = f"torch._scaled_mm wants outputs and inputs by 16, not {layer.outputs} and {layer.inputs}"
    return Limit(reason, "at its first forward", f"{QUANTIZATION}/fp8_utils.py:{line}")


ACTIVATION_GROUPS: Final = (16, 32, 64, 128, 256)
"""Source: `_SUPPORTED_GROUP_SIZES` of `kernels/ops/quantization/per_token_group_quant.py`."""


def _blocks(layer: Layer) -> Limit | None:
    """FP8 by block: activations are quantized by the width of a block, which must divide the inputs.

    A `CompressedTensors…` scheme carries the block of the group that targets `Linear`.
    """
    if layer.scheme.block_size is None:
        return None
    width = layer.scheme.block_size[1]
    if layer.inputs % width:
        reason = f"activations are quantized by {width}, which does not divide its {layer.inputs} inputs"
        return Limit(reason, "at its first forward", "kernels/ops/quantization/fp8_kernel.py:502")
    if width in ACTIVATION_GROUPS or width == layer.inputs:
        return None
    listed = ", ".join(map(str, ACTIVATION_GROUPS))
    reason = f"activations are quantized by {listed}, and its blocks are {width} wide"
    return Limit(reason, "at its first forward", "kernels/ops/quantization/per_token_group_quant.py:41")


NATIVE_FP8: Final = 89
"""Below it FP8 runs on Marlin. Source: `can_auto_enable_marlin_fp8` in `fp8_utils.py`."""


def _fp8(layer: Layer) -> Limit | None:
    """`Fp8LinearMethod`."""
    return _marlin_fp8(layer) if layer.capability < NATIVE_FP8 else _blocks(layer)


INT8_CARDS: Final = range(75, 91)
"""Source: the compiled `int8_scaled_mm` of sgl_kernel for SGLang 0.5.23, which knows 7.5 to 8.9 and 9.0."""


def _int8(layer: Layer) -> Limit | None:
    """`int8_scaled_mm`, for weights and activations in INT8."""
    by_ct = f"{QUANTIZATION}/compressed_tensors/schemes/compressed_tensors_w8a8_int8.py:176"
    source = f"{QUANTIZATION}/w8a8_int8.py:224" if layer.scheme.name == W8A8_INT8 else by_ct
    if layer.capability not in INT8_CARDS:
        reason = "int8_scaled_mm has kernels for compute capability 7.5 to 9.0 alone"
    elif layer.inputs % 16 or layer.outputs % 8:
        reason = f"int8_scaled_mm wants inputs by 16 and outputs by 8, not {layer.inputs} and {layer.outputs}"
    elif layer.scale_kind is Kind.TENSOR_SCALE:
        reason = "int8_scaled_mm wants a scale for each output, not one for the whole weight"
    else:
        return None
    return Limit(reason, "at its first forward", source)


NATIVE_FP4: Final = 100
"""Below it NVFP4 runs on Marlin. Source: `initialize_fp4_gemm_config` in `fp4_utils.py`."""

NVFP4_GROUP: Final = 16


def _nvfp4_weight_only(layer: Layer) -> Limit | None:
    """`ModelOptNvFp4A16LinearMethod`, on Marlin on every card; odd shapes are padded."""
    return _nvfp4_group(layer, f"{QUANTIZATION}/modelopt_quant.py:2286")


def _nvfp4(layer: Layer) -> Limit | None:
    """`ModelOptFp4LinearMethod`."""
    on_marlin = layer.capability < NATIVE_FP4
    return _nvfp4_group(layer, f"{QUANTIZATION}/modelopt_quant.py:1920") if on_marlin else None


def _nvfp4_group(layer: Layer, source: str) -> Limit | None:
    scale = layer.scale
    assert scale is not None
    if scale.shape[1] == layer.inputs // NVFP4_GROUP:
        return None
    reason = f"NVFP4 on Marlin wants groups of {NVFP4_GROUP}, not {scale.shape[1]} over {layer.inputs} inputs"
    return Limit(reason, "after the load", source)


W8A8_INT8: Final = "W8A8Int8LinearMethod"

KERNELS: Final[Mapping[str, Callable[[Layer], Limit | None]]] = {
    "CompressedTensorsWNA16": _wna16,
    "CompressedTensorsW8A16Fp8": _marlin_fp8,
    "CompressedTensorsW8A8Fp8": _ct_fp8,
    "CompressedTensorsW8A8Int8": _int8,
    W8A8_INT8: _int8,
    "GPTQMarlinLinearScheme": _marlin_shape,
    "Fp8LinearMethod": _fp8,
    "ModelOptNvFp4A16LinearMethod": _nvfp4_weight_only,
    "ModelOptFp4LinearMethod": _nvfp4,
}
"""Scheme -> what its kernel demands. Not here: AWQ and GPTQ's groups, which the build checks; FP8 by row
(`W8A8Fp8LinearMethod`, `ModelOptFp8LinearMethod`) and `CompressedTensorsW4A16Fp4`, which pad or fall back."""
