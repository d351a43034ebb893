"""What the tensors of a quantized module look like, in the words of the tools that write them."""

from collections.abc import Callable
from typing import Final

from dflash_audit.diagnosis.stored import Stored
from dflash_audit.sources.checkpoint import Tensor

WORD: Final = 32
"""Bits of the integers that packed weights are stored in."""


def layout(stored: Stored, inputs: int) -> str:
    """The layout of one module with so many inputs: the method that reads it, and its settings."""
    for fits, name in LAYOUTS:
        if fits(stored):
            return name(stored, inputs)
    return "no layout that is known here"


def _dtype(stored: Stored, leaf: str) -> str | None:
    tensor = stored.leaves.get(leaf)
    return tensor.dtype if tensor else None


def _is(leaf: str, *dtypes: str) -> Callable[[Stored], bool]:
    return lambda stored: _dtype(stored, leaf) in dtypes


def _columns(tensor: Tensor | None) -> int:
    return tensor.shape[-1] if tensor and tensor.shape else 1


def _wna16(stored: Stored, inputs: int) -> str:
    packed = _columns(stored.weight)
    bits = f"{WORD * packed // inputs} bits" if inputs and (WORD * packed) % inputs == 0 else "packed"
    groups = _columns(stored.scale)
    by = "by row" if groups <= 1 else f"in groups of {inputs // groups}"
    return f"compressed-tensors pack-quantized, {bits} {by}"


def _gptq_or_awq(stored: Stored, inputs: int) -> str:
    weight = stored.leaves["qweight"]
    return "AWQ" if weight.shape and weight.shape[0] == inputs else "GPTQ"


def _fp8(stored: Stored, inputs: int) -> str:
    del inputs
    scale = stored.scale
    if scale is None:
        return "FP8 without its scales"
    if len(scale.shape) == 2 and scale.shape[1] > 1:
        return "FP8 by block (quant_method fp8 with a weight_block_size)"
    by = "by row" if len(scale.shape) == 2 and scale.shape[0] > 1 else "by tensor"
    return f"FP8 {by} (compressed-tensors float-quantized, ModelOpt FP8 or quant_method fp8)"


def _modelopt_fp4(stored: Stored, inputs: int) -> str:
    del inputs
    return f"ModelOpt {'NVFP4' if 'input_scale' in stored.leaves else 'W4A16_NVFP4'}"


def _named(name: str) -> Callable[[Stored, int], str]:
    return lambda stored, inputs: name


LAYOUTS: Final = (
    (_is("weight_packed", "I32"), _wna16),
    (_is("weight_packed", "U8"), _named("compressed-tensors nvfp4-pack-quantized")),
    (_is("qweight", "I32"), _gptq_or_awq),
    (_is("weight", "U8"), _modelopt_fp4),
    (_is("weight", "F8_E4M3", "F8_E5M2"), _fp8),
    (_is("weight", "I8"), _named("INT8 (compressed-tensors int-quantized or quant_method w8a8_int8)")),
    (_is("weight", "U32"), _named("MLX, which this engine does not read")),
)
"""What a layout is told by, and how it is called."""
