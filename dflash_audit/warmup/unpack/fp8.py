"""FP8 weights: a scale for each matrix, by block, MXFP8, and dense weights that become FP8.

Source: SGLang 0.5.23 `srt/layers/quantization/fp8.py` (`Fp8LinearMethod`) and
`fp8_utils.py`. The dtypes tell the forms apart, as `create_weights` makes them.
"""

from collections.abc import Mapping
from functools import partial

import torch

from dflash_audit.tree import Module
from dflash_audit.warmup.linear import DenseLinear
from dflash_audit.warmup.unpack.layer import bias, by_row, parameter, scheme
from dflash_audit.warmup.unpack.rounding import fp8_by_group, fp8_by_token, fp8_static, mxfp8
from dflash_audit.warmup.unpack.scaling import rounded, scaled, scaled_by_block


def fp8(module: Module, stored: Mapping[str, torch.Tensor]) -> DenseLinear:
    """`Fp8LinearMethod`, in each of its forms.

    A config's `scale_fmt` of `ue8m0`, which rounds the inputs' scales of FP8 in
    blocks to powers of two, is not in the scheme: the inputs are a little finer here.
    """
    block_scale = parameter(module, "weight_scale_inv")
    if block_scale is not None:
        return _mxfp8(module, stored) if block_scale.dtype == "uint8" else _blocks(module, stored)
    if parameter(module, "weight_scale") is not None:
        return _by_matrix(module, stored)
    return _online_mxfp8(module, stored) if scheme(module).block_size else online(module, stored)


def online(module: Module, stored: Mapping[str, torch.Tensor]) -> DenseLinear:
    """A dense weight, made FP8 by row after the load; inputs FP8 by token."""
    return DenseLinear(rounded(stored["weight"], fp8_by_token), bias(module, stored), fp8_by_token)


def _online_mxfp8(module: Module, stored: Mapping[str, torch.Tensor]) -> DenseLinear:
    return DenseLinear(rounded(stored["weight"], mxfp8), bias(module, stored), mxfp8)


def _by_matrix(module: Module, stored: Mapping[str, torch.Tensor]) -> DenseLinear:
    """Each matrix keeps its scale, for the kernels scale by row; static inputs share the greatest."""
    weight = stored["weight"]
    dense = scaled(weight.__getitem__, by_row(stored["weight_scale"], module), weight.shape[1])
    round_input = fp8_by_token
    if parameter(module, "input_scale") is not None:
        round_input = partial(fp8_static, scale=stored["input_scale"].max())
    return DenseLinear(dense, bias(module, stored), round_input)


def _blocks(module: Module, stored: Mapping[str, torch.Tensor]) -> DenseLinear:
    block = scheme(module).block_size
    assert block is not None, f"{module.name} has scales of blocks and no size of them"
    weight = scaled_by_block(stored["weight"], stored["weight_scale_inv"], block)
    return DenseLinear(weight, bias(module, stored), partial(fp8_by_group, width=block[1]))


def _mxfp8(module: Module, stored: Mapping[str, torch.Tensor]) -> DenseLinear:
    scales = stored["weight_scale_inv"].view(torch.float8_e8m0fnu).float()
    weight = scaled_by_block(stored["weight"], scales, (1, 32))
    return DenseLinear(weight, bias(module, stored), mxfp8)
