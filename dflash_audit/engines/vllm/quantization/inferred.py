"""Which modules of a checkpoint are quantized, by the dtypes of their tensors.

Source: vLLM 0.33.0 `auto_gptq.py` and `auto_awq.py`, `maybe_update_config`.
"""

from collections.abc import Iterable
from typing import Final

from dflash_audit.refusal import Refused
from dflash_audit.sources.checkpoint import Tensor

DENSE: Final = ("F16", "BF16", "F32")

KNOWN: Final = frozenset(
    "F64 F32 F16 BF16 I64 I32 I16 I8 U64 U32 U16 U8 BOOL C64 F8_E4M3 F8_E5M2 F8_E4M3FNUZ F8_E5M2FNUZ".split()
)
"""Source: safetensors 0.8.0 `torch.py`, `_TYPES`, in which the engine looks each dtype up."""


def quantized_modules(tensors: Iterable[Tensor]) -> tuple[str, ...]:
    """The modules, under the checkpoint's names, that hold a tensor of another dtype than the dense ones."""
    tensors = tuple(tensors)
    odd = next((tensor for tensor in tensors if tensor.dtype not in KNOWN), None)
    if odd is not None:
        raise Refused(f"{odd.name} is of {odd.dtype}, which the engine finds no dtype of torch for")
    return tuple(dict.fromkeys(_module(t) for t in tensors if t.dtype not in DENSE))


def dense_modules(tensors: tuple[Tensor, ...]) -> tuple[str, ...]:
    """The others."""
    quantized = set(quantized_modules(tensors))
    return tuple(dict.fromkeys(name for name in map(_module, tensors) if name not in quantized))


def _module(tensor: Tensor) -> str:
    return tensor.name.rsplit(".", 1)[0]
