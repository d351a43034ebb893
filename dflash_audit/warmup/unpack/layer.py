"""What every unpacker asks about a linear of the built tree."""

from collections.abc import Mapping

import torch

from dflash_audit.tree import Linear, Module, Parameter, Scheme


def linear(module: Module) -> Linear:
    """The shapes of a quantized linear."""
    assert module.linear is not None, f"{module.name} is no linear"
    return module.linear


def scheme(module: Module) -> Scheme:
    """The scheme of a quantized linear."""
    assert module.scheme is not None, f"{module.name} has no scheme"
    return module.scheme


def parameter(module: Module, name: str) -> Parameter | None:
    """A parameter of the module by its own name, None where it has no such."""
    return next((own for own in module.parameters if own.name == name), None)


def bias(module: Module, stored: Mapping[str, torch.Tensor]) -> torch.Tensor | None:
    """The bias, which is dense in every scheme."""
    return stored["bias"] if parameter(module, "bias") else None


def by_row(scales: torch.Tensor, module: Module) -> torch.Tensor:
    """One scale for each logical matrix, repeated for its rows: [matrices] -> [outputs, 1].

    Source: SGLang 0.5.23 `convert_to_channelwise` in `srt/layers/quantization/utils.py`.
    """
    sizes = linear(module).output_partition_sizes
    return torch.cat([scale.expand(size) for scale, size in zip(scales, sizes, strict=True)]).unsqueeze(1)
