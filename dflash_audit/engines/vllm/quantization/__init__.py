"""Quantization methods as vLLM applies them to a draft, one file per method.

File formats and the parameters of a scheme are those of `dflash_audit.quantization` where
they are the same; names are matched as vLLM does.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from dflash_audit.engines.vllm.quantization.config import QuantConfig, Surroundings

METHODS: Final[Mapping[str, str]] = {
    "fp8": "fp8:read",
    "compressed-tensors": "compressed_tensors:read",
    "modelopt": "modelopt:read_fp8",
    "modelopt_fp4": "modelopt:read_fp4",
    "modelopt_mxfp8": "modelopt:read_mxfp8",
    "mxfp8": "modelopt:read_mxfp8",
    "modelopt_mixed": "modelopt:read_mixed",
    "auto_gptq": "gptq:read",
    "gptq_marlin": "gptq:read",
    "auto_awq": "awq:read",
    "awq_marlin": "awq:read",
    "inc": "inc:read",
}
"""vLLM's name of a method -> the reader of its config (`from_config`), as module:function of this package.

Source: vLLM 0.33.0 `model_executor/layers/quantization/__init__.py`.
"""


def reader(method: str) -> "Callable[[Mapping[str, Any], Surroundings], QuantConfig]":
    """What reads the config of a method; its file is imported when it is asked for."""
    module, _, function = METHODS[method].partition(":")
    read: Callable[[Mapping[str, Any], Surroundings], QuantConfig]
    read = getattr(import_module(f"{__name__}.{module}"), function)
    return read
