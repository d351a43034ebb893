"""Quantization methods: from a config to the scheme of each layer, one file per method."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from dflash_audit.quantization.config import QuantConfig, Surroundings

METHODS: Final[Mapping[str, str]] = {
    "fp8": "fp8:read",
    "mxfp8": "fp8:read",
    "modelopt": "modelopt:read_fp8",
    "modelopt_fp8": "modelopt:read_fp8",
    "modelopt_fp4": "modelopt:read_fp4",
    "nvfp4_online": "modelopt:read_nvfp4_online",
    "modelopt_mixed": "modelopt:read_mixed",
    "w8a8_int8": "w8a8:read_int8",
    "w8a8_fp8": "w8a8:read_fp8",
    "awq": "awq:read",
    "awq_marlin": "awq:read_marlin",
    "gptq_marlin": "gptq:read",
    "compressed-tensors": "compressed_tensors:read",
    "w4afp8": "fp8:read_w4afp8",
    "auto-round": "auto_round:read",
    "auto-round-int8": "w8a8:read_int8",
}
"""SGLang's name of a method -> the reader of its config (`from_config`), as module:function of this package.

Source: SGLang 0.5.23 `srt/layers/quantization/__init__.py`, `QUANTIZATION_METHODS`.
"""

WITHOUT_CONFIG: Final[Mapping[str, str]] = {
    "fp8": "fp8:online",
    "mxfp8": "fp8:mxfp8_online",
    "modelopt_fp4": "modelopt:fp4_online",
    "nvfp4_online": "modelopt:nvfp4_online",
    "w8a8_int8": "w8a8:int8_online",
    "w8a8_fp8": "w8a8:fp8_online",
    "w4afp8": "fp8:w4afp8_online",
    "auto-round-int8": "w8a8:int8_online",
}
"""Method -> what it makes of a draft that has no config for it.

Source: SGLang 0.5.23 `srt/model_loader/weight_utils.py`, `get_quant_config`.
"""


def reader(method: str) -> "Callable[[Mapping[str, Any], Surroundings], QuantConfig]":
    """What reads the config of a method; its file is imported when it is asked for."""
    read: Callable[[Mapping[str, Any], Surroundings], QuantConfig] = _function(METHODS[method])
    return read


def reader_without_config(method: str) -> "Callable[[Surroundings], QuantConfig]":
    """What a method makes of a draft that has no config for it."""
    read: Callable[[Surroundings], QuantConfig] = _function(WITHOUT_CONFIG[method])
    return read


def _function(place: str) -> Any:
    module, _, function = place.partition(":")
    return getattr(import_module(f"{__name__}.{module}"), function)
