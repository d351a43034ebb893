"""Which of vLLM's attention backends a draft's layers get on a card, and where none takes them.

Source: vLLM 0.33.0 `platforms/cuda.py` (`_get_backend_priorities`), `v1/attention/backend.py`
(`validate_configuration`), `v1/attention/backends/flash_attn.py`, `fa_utils.py`, `flashinfer.py`,
`triton_attn.py` and `flex_attention.py`.
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from dflash_audit.engines.vllm.quantization.compressed_tensors import CompressedTensors
from dflash_audit.engines.vllm.quantization.config import QuantConfig
from dflash_audit.refusal import Refused

HOPPER: Final = 9
BLACKWELL: Final = 10
"""Major versions of a compute capability: H100 and H200, B200 and B300."""

FP8_OF_TRITON: Final = 89
"""Compute capability times ten from which Triton has 8-bit floats of its own."""


class Asked(NamedTuple):
    """What an attention layer asks of a backend; `by_head` where its FP8 cache has a scale for each head."""

    head_size: int
    sinks: bool
    fp8: bool
    by_head: bool


def _flash_version(capability: int, asked: Asked) -> int:
    """The version of FlashAttention for layers of this kind, on a card of 8.0 or more."""
    major, size = capability // 10, asked.head_size
    if major == HOPPER:
        return 4 if size > 256 else 3
    if major != BLACKWELL or (size > 128 and size != 256):
        return 2
    return 2 if size == 256 and (asked.sinks or asked.fp8) else 4


def _flash(capability: int, asked: Asked) -> bool:
    major, size = capability // 10, asked.head_size
    newest = major in (HOPPER, BLACKWELL)
    if capability < 80 or size % 8 or size > (512 if newest else 256):
        return False
    if (asked.sinks or asked.by_head) and not newest:
        return False
    version = _flash_version(capability, asked)
    by_hopper = major == HOPPER and (version == 3 or size == 512)
    return not asked.fp8 or by_hopper or (major == BLACKWELL and version == 4)


def _flashinfer(capability: int, asked: Asked) -> bool:
    # With sinks it depends on the kernels that can be fetched: Triton takes what this refuses.
    fits = 80 <= capability <= 121 and asked.head_size in (64, 128, 256, 512)
    return fits and not asked.sinks and not asked.by_head


def _triton(capability: int, asked: Asked) -> bool:
    del capability
    return asked.head_size >= 32 and not asked.by_head


def _flex(capability: int, asked: Asked) -> bool:
    del capability
    return not asked.sinks and not asked.fp8


TRITON: Final = "TRITON_ATTN"

BACKENDS: Final[Mapping[str, Callable[[int, Asked], bool]]] = {
    "FLASH_ATTN": _flash,
    "FLASHINFER": _flashinfer,
    TRITON: _triton,
    "FLEX_ATTENTION": _flex,
}
"""Whether each takes a layer on a card, in the order in which the engine asks for a draft that is not causal.

For a causal one on a B200 it asks FlashInfer first, which refuses nothing that another would not.
"""


def asked_of(quant: QuantConfig | None, head_size: int, sinks: bool) -> Asked:
    """What the attention of a draft with this quantization config asks for.

    Of all methods it is compressed-tensors' scheme of a cache that `Attention` goes by; the cache's own
    dtype comes from the target and from the command.
    """
    scheme = quant.kv_cache if isinstance(quant, CompressedTensors) else None
    by_head = isinstance(scheme, Mapping) and scheme.get("strategy") == "attn_head"
    return Asked(head_size, sinks, scheme is not None, by_head)


def backend(capability: int, asked: Asked) -> str:
    """The backend of a layer on a card of this compute capability (times ten).

    Raises `Refused` where none takes it, or where the one that does refuses it as it is made.
    """
    found = next((name for name, takes in BACKENDS.items() if takes(capability, asked)), None)
    card = f"compute capability {capability / 10:.1f}"
    if found is None:
        raise Refused(f"no attention backend takes {_told(asked)} on {card}")
    if found == TRITON and asked.fp8 and capability < FP8_OF_TRITON:
        raise Refused(f"an FP8 KV cache with {_told(asked._replace(fp8=False))} is not supported on {card}")
    return found


def _told(asked: Asked) -> str:
    parts = [f"heads of {asked.head_size}"]
    parts += ["attention sinks"] if asked.sinks else []
    parts += ["an FP8 KV cache with a scale for each head"] if asked.by_head else []
    parts += ["an FP8 KV cache"] if asked.fp8 and not asked.by_head else []
    return " and ".join(parts)
