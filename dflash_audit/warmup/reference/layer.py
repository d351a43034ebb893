"""A decoder layer: attention and MLP, each after a norm and each added to the residual.

Source: SGLang 0.5.23 `srt/models/dflash.py`, `DFlashDecoderLayer`.
"""

import torch

from dflash_audit.warmup.reference.attention import attention
from dflash_audit.warmup.reference.blocks import Blocks
from dflash_audit.warmup.reference.convolution import convolved
from dflash_audit.warmup.reference.mlp import mlp
from dflash_audit.warmup.reference.modules import Modules

Stream = tuple[torch.Tensor, torch.Tensor | None]
"""Between layers, [requests, rows, hidden] each: the last output, and what it is yet to be added to."""


def layer(modules: Modules, index: int, stream: Stream, context: torch.Tensor, blocks: Blocks) -> Stream:
    """One layer over the blocks, with the keys and values that it makes of the context [context, hidden]."""
    name = f"layers.{index}"
    hidden, residual = normed(modules, f"{name}.input_layernorm", stream)
    if modules.forward.context_norm:
        context = modules.norm(f"{name}.input_layernorm", context)

    def attend(x: torch.Tensor) -> torch.Tensor:
        shape = modules.forward.layers[index]
        return attention(modules, f"{name}.self_attn", shape, x, context, blocks)

    hidden = convolved(modules, f"{name}.attention_conv", hidden, attend)
    hidden, residual = modules.add_and_norm(f"{name}.post_attention_layernorm", hidden, residual)
    return convolved(modules, f"{name}.mlp_conv", hidden, lambda x: mlp(modules, f"{name}.mlp", x)), residual


def normed(modules: Modules, name: str, stream: Stream) -> tuple[torch.Tensor, torch.Tensor]:
    """The norm of what flows in, and its sum: nothing has been added to an embedding yet."""
    hidden, residual = stream
    if residual is None:
        return modules.norm(name, hidden), hidden
    return modules.add_and_norm(name, hidden, residual)
