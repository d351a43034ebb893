"""Poison in every parameter that has no right value of its own, before the load fills what it fills."""

from typing import Any

import torch

from dflash_audit.engines.sglang_installed.own_values import has_own_value
from dflash_audit.warmup.memory import POISON_BYTE


def poison_parameters(model: Any, act_order: bool) -> None:
    """NaN in floats, POISON_BYTE in every byte of integers; in place.

    That covers what `torch.empty` left, and what a constructor made up: a plain
    `nn.Linear`, a norm of ones.
    """
    for module in model.modules():
        method = getattr(module, "scheme", None) or getattr(module, "quant_method", None)
        for own, parameter in module.named_parameters(recurse=False):
            if not has_own_value(own, type(method).__name__ if method else "", act_order):
                _fill(parameter.data)


def _fill(held: torch.Tensor) -> None:
    if not held.is_floating_point():
        held.contiguous().view(torch.uint8).fill_(POISON_BYTE)
    elif held.element_size() == 1:
        held.view(torch.uint8).fill_(0xFF)  # NaN in every 8-bit float; not all of them have `fill_`
    else:
        held.fill_(float("nan"))
