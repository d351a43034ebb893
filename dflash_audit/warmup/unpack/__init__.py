"""From a module's stored parameters to the linear that the engine's kernel computes, one file a family.

Source: SGLang 0.5.23 `srt/layers/quantization/`: what each scheme's
`process_weights_after_loading` makes of the parameters, and what its `apply`
reads of that, on an H200 (compute capability 9.0). A scheme that is built on
newer cards alone (W4A4 of compressed-tensors, MXFP8) is computed as there;
`ModelOptFp4LinearMethod`, which is built on both, as on the H200, by Marlin.

Only what reaches a sum is read of `stored`. Weights come out in bfloat16: a
number times its scale in float32, rounded once. Marlin rounds so where it
scales by group, in its registers; the kernels that scale their float32 sums
instead (by row or by tensor) round less, by a part in 512 of a weight.
"""

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Final

import torch

from dflash_audit.tree import Module
from dflash_audit.warmup.linear import DenseLinear

DENSE: Final = "UnquantizedLinearMethod"

SCHEMES: Final[Mapping[str, str]] = {
    DENSE: "dense:dense",
    "CompressedTensorsWNA16": "compressed_tensors:wna16",
    "CompressedTensorsW8A16Fp8": "compressed_tensors:w8a16_fp8",
    "CompressedTensorsW8A8Fp8": "compressed_tensors:w8a8_fp8",
    "CompressedTensorsW8A8Int8": "compressed_tensors:w8a8_int8",
    "CompressedTensorsW4A16Fp4": "compressed_tensors:w4a16_fp4",
    "CompressedTensorsW4A4Fp4": "compressed_tensors:w4a4_fp4",
    "Fp8LinearMethod": "fp8:fp8",
    "ModelOptFp8LinearMethod": "modelopt:fp8",
    "ModelOptFp4LinearMethod": "modelopt:nvfp4",
    "ModelOptNvFp4A16LinearMethod": "modelopt:nvfp4",
    "GPTQMarlinLinearScheme": "gptq:marlin",
    "AWQMarlinLinearScheme": "awq:awq",
    "AWQLinearScheme": "awq:awq",
    "W8A8Fp8LinearMethod": "w8a8:fp8",
    "W8A8Int8LinearMethod": "w8a8:int8",
}
"""`Scheme.name` of a linear -> what unpacks it, as module:function of this package.

AutoRound's layers have the schemes of GPTQ and AWQ.
"""


Unpacker = Callable[[Module, Mapping[str, torch.Tensor]], DenseLinear]


def import_unpackers(modules: Iterable[Module]) -> None:
    """Import what unpacks these modules, some of which takes seconds, before a time counts."""
    for module in modules:
        if module.linear is not None:
            _unpacker(module)


def unpack(module: Module, stored: Mapping[str, torch.Tensor]) -> DenseLinear:
    """The linear that the engine runs for `module`.

    `stored` maps the module's own parameter names to what they hold after the
    load, in the parameter's dtype and shape. A module without a scheme is dense.

    Raises:
        KeyError: nothing here unpacks the scheme.
        Refused: the engine raises on the values, before it serves.
    """
    return _unpacker(module)(module, stored)


def _unpacker(module: Module) -> Unpacker:
    file, _, function = SCHEMES[module.scheme.name if module.scheme else DENSE].partition(":")
    found: Unpacker = getattr(import_module(f"{__name__}.{file}"), function)
    return found
