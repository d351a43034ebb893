"""Which modules of a checkpoint are quantized, by the dtypes of their tensors.

Source: vLLM 0.33.0 `auto_gptq.py` and `auto_awq.py`, `maybe_update_config`.
"""

from collections.abc import Iterable
from typing import Final

from dflash_audit.sources.checkpoint import Tensor

DENSE: Final = ("F16", "BF16", "F32")


def quantized_modules(tensors: Iterable[Tensor]) -> tuple[str, ...]:
    """The modules, under the checkpoint's names, that hold a tensor of another dtype than the dense ones."""
    return tuple(dict.fromkeys(_module(t) for t in tensors if t.dtype not in DENSE))


def dense_modules(tensors: tuple[Tensor, ...]) -> tuple[str, ...]:
    """The others."""
    quantized = set(quantized_modules(tensors))
    return tuple(dict.fromkeys(name for name in map(_module, tensors) if name not in quantized))


def _module(tensor: Tensor) -> str:
    return tensor.name.rsplit(".", 1)[0]
