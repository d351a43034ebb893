"""What numbers a linear's kernel multiplies, and how many of them share a scale. Imports no torch."""

import math
from dataclasses import dataclass
from typing import Final

from dflash_audit.dtypes import DENSE_FLOATS
from dflash_audit.tree import Linear, Module
from dflash_audit.warmup.result import Numbers

WEIGHTS: Final = ("weight_packed", "qweight", "weight")
SCALES: Final = ("weight_scale", "weight_scale_inv", "scales")
"""The names of parameters in `dflash_audit.quantization`; the first that a module has counts."""

DENSE: Final = 16
WORD: Final = {"int32": 32, "int8": 8}
"""Dtype of integers -> bits of one, which holds one weight or several."""


@dataclass(frozen=True, slots=True)
class StoredForm:
    """`numbers` of so many `bits`, of which `width` in a row share a scale: all inputs where no group does.

    `bits` are DENSE for all dense floats.
    """

    numbers: Numbers
    bits: int
    width: int


def stored_form(module: Module) -> StoredForm:
    """The form of a linear's weights, by the dtypes and shapes of its parameters."""
    layer = module.linear
    assert layer is not None
    parameters = {parameter.name: parameter for parameter in module.parameters}
    weight = next(parameters[name] for name in WEIGHTS if name in parameters)
    if weight.dtype in WORD:
        weights = layer.input_size_per_partition * layer.output_size_per_partition
        bits = WORD[weight.dtype] * math.prod(weight.shape) // weights
        return StoredForm("int", bits, _width(module, layer))
    if weight.dtype in DENSE_FLOATS:
        # A dense weight under a scheme becomes FP8 after the load: all such schemes are of FP8.
        online = module.scheme is not None and module.scheme.name != "UnquantizedLinearMethod"
        return StoredForm("float", 8 if online else DENSE, layer.input_size_per_partition)
    return StoredForm("float", 4 if weight.dtype == "uint8" else 8, _width(module, layer))


def _width(module: Module, layer: Linear) -> int:
    """Inputs of a group: where groups do not divide them evenly, or are shuffled, some that are as many."""
    inputs = layer.input_size_per_partition
    scale = next((p for name in SCALES for p in module.parameters if p.name == name), None)
    if scale is None or scale.placement.output_dim is None:
        return inputs
    groups = scale.shape[1 - scale.placement.output_dim]
    return inputs // groups if groups and inputs % groups == 0 else inputs
