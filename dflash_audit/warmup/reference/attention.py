"""Attention of a block's rows over the context's keys and the block's own.

Source: SGLang 0.5.23 `srt/models/dflash.py`, `DFlashAttention` and
`DFlashLagunaAttention`; `kernels/ops/attention/extend_attention.py` for sinks.
Heads that do not divide are refused as by FlashAttention 3, the default on an H200.
"""

from dataclasses import replace

import torch

from dflash_audit.forward import Layer
from dflash_audit.refusal import Refused
from dflash_audit.warmup.linear import DenseLinear
from dflash_audit.warmup.reference.blocks import Blocks
from dflash_audit.warmup.reference.gates import gated
from dflash_audit.warmup.reference.modules import Modules
from dflash_audit.warmup.reference.rope import rotate

KeysValues = tuple[torch.Tensor, torch.Tensor]


def attention(
    modules: Modules, name: str, layer: Layer, hidden: torch.Tensor, context: torch.Tensor, blocks: Blocks
) -> torch.Tensor:
    """[requests, rows, hidden] and the context's [context, hidden] -> [requests, rows, hidden].

    Raises:
        Refused: the query heads are no multiple of the key heads.
    """
    shared = modules.forward.attention
    if shared.heads % shared.kv_heads:
        keys_of = f"{shared.kv_heads} key and value heads"
        raise Refused(f"{shared.heads} query heads cannot be shared out evenly among {keys_of}")
    widths = [heads * shared.head_dim for heads in (shared.heads, shared.kv_heads, shared.kv_heads)]
    qkv = modules.weights.linear(f"{name}.qkv_proj")
    outputs = modules.watch.module(f"{name}.qkv_proj", _rows(qkv, widths[0])(context))
    keys, values = outputs.chunk(2, dim=-1)
    before = _keys_values(modules, name, keys, values, blocks.context_positions)

    queries, keys, values = modules.watch.module(f"{name}.qkv_proj", qkv(hidden)).split(widths, dim=-1)
    own = _keys_values(modules, name, keys, values, blocks.positions)
    queries = modules.norm(f"{name}.q_norm", queries.unflatten(-1, (shared.heads, shared.head_dim)))
    queries = rotate(shared.rope, blocks.positions, queries)

    sinks = modules.weights.parameter(f"{name}.attention_sink_bias") if shared.sinks else None
    attended = attend(queries, before, own, blocks.visible(layer), sinks)
    if shared.sinks:
        attended = modules.watch.module(name, attended)
    return modules.linear(f"{name}.o_proj", gated(modules, name, attended, hidden))


def attend(
    queries: torch.Tensor,
    before: KeysValues,
    own: KeysValues,
    visible: torch.Tensor,
    sinks: torch.Tensor | None,
) -> torch.Tensor:
    """Softmax attention in float32, the query heads in as many groups as there are key heads.

    Args:
        queries: [requests, rows, heads, head_dim]
        before: keys and values of the context, [context, key heads, head_dim] each.
        own: those of the blocks, [requests, rows, key heads, head_dim] each.
        visible: [requests, rows, context + rows]
        sinks: [heads], logits that take part in the softmax and bring no value.

    Returns:
        [requests, rows, heads * head_dim]
    """
    heads, head_dim = queries.shape[-2:]
    key_heads = before[0].shape[-2]
    grouped = queries.float().unflatten(-2, (key_heads, heads // key_heads))
    scores = torch.cat(
        (
            torch.einsum("bqngd,knd->bngqk", grouped, before[0].float()),
            torch.einsum("bqngd,bknd->bngqk", grouped, own[0].float()),
        ),
        dim=-1,
    )
    scores = scores * head_dim**-0.5
    scores = torch.where(visible[:, None, None], scores, -torch.inf)
    if sinks is not None:
        sink = sinks.float().view(key_heads, -1, 1, 1).expand(*scores.shape[:-1], 1)
        scores = torch.cat((scores, sink), dim=-1)
    shares = torch.softmax(scores, dim=-1)
    context = before[0].shape[0]
    total = torch.einsum("bngqk,knd->bqngd", shares[..., :context], before[1].float())
    last = shares[..., context : context + own[0].shape[1]]
    total = total + torch.einsum("bngqk,bknd->bqngd", last, own[1].float())
    return total.flatten(2).to(queries.dtype)


def _rows(linear: DenseLinear, start: int) -> DenseLinear:
    """The outputs from `start` on: of the context nobody asks for queries."""
    bias = None if linear.bias is None else linear.bias[start:]
    return replace(linear, weight=linear.weight[start:], bias=bias)


def _keys_values(
    modules: Modules, name: str, keys: torch.Tensor, values: torch.Tensor, positions: torch.Tensor
) -> KeysValues:
    """Split into heads; keys normed and turned, values scaled."""
    shared = modules.forward.attention
    keys, values = (part.unflatten(-1, (shared.kv_heads, shared.head_dim)) for part in (keys, values))
    keys = rotate(shared.rope, positions, modules.norm(f"{name}.k_norm", keys))
    return keys, values if shared.value_scale is None else values * shared.value_scale
