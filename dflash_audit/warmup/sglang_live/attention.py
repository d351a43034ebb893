"""The attention backend: SGLang's Triton kernels on a GPU, torch's attention in their place on a CPU."""

from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F
from sglang.srt.layers.radix_attention import AttentionType, RadixAttention
from sglang.srt.mem_cache.memory_pool import KVWriteLoc

from dflash_audit.warmup.sglang_live.pools import Runner


def attention_backend(runner: Runner, device: torch.device) -> Any:
    """The backend for a forward context; on a CPU `RadixAttention` is changed for good."""
    if device.type != "cpu":
        from sglang.srt.layers.attention.triton_backend import TritonAttnBackend

        return TritonAttnBackend(runner)
    RadixAttention.forward = _forward(runner)
    return SimpleNamespace(
        token_to_kv_pool=runner.token_to_kv_pool,
        req_to_token_pool=runner.req_to_token_pool,
        init_forward_metadata=lambda batch: None,
    )


def _forward(runner: Runner) -> Any:
    """`RadixAttention.forward` over the pool's keys and values, request by request."""

    def forward(
        self: Any,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        batch: Any,
        save_kv_cache: bool = True,
        **more: Any,
    ) -> torch.Tensor:
        del save_kv_cache
        pool = runner.token_to_kv_pool
        keys = k.reshape(-1, self.tp_k_head_num, self.head_dim)
        values = v.reshape(-1, self.tp_v_head_num, self.head_dim)
        pool.set_kv_buffer(self, KVWriteLoc.for_batch(batch), keys, values)
        queries = q.reshape(batch.batch_size, -1, self.tp_q_head_num, self.head_dim)
        attended = [
            _attend(self, queries[i], runner, batch, i, more.get("sinks")) for i in range(len(queries))
        ]
        return torch.cat(attended).reshape(-1, self.tp_q_head_num * self.head_dim)

    return forward


def _attend(
    layer: Any, queries: torch.Tensor, runner: Runner, batch: Any, request: int, sinks: torch.Tensor | None
) -> torch.Tensor:
    """One request: [rows, heads, head_dim] -> the same."""
    if sinks is not None:
        raise NotImplementedError("attention sinks have no stand-in on a CPU")
    before, rows = int(batch.seq_lens[request]), queries.shape[0]
    place = int(batch.req_pool_indices[request])
    slots = runner.req_to_token_pool.req_to_token[place, : before + rows].long()
    keys = runner.token_to_kv_pool.get_key_buffer(layer.layer_id)[slots]
    values = runner.token_to_kv_pool.get_value_buffer(layer.layer_id)[slots]
    own = torch.arange(before, before + rows)[:, None]
    there = torch.arange(before + rows)[None]
    visible = torch.ones(rows, before + rows, dtype=torch.bool)
    if layer.attn_type != AttentionType.ENCODER_ONLY:
        visible &= there <= own
    if layer.sliding_window_size is not None and layer.sliding_window_size > -1:
        visible &= there >= own - layer.sliding_window_size
    heads_first = (tensor.transpose(0, 1) for tensor in (queries, keys, values))
    attended = F.scaled_dot_product_attention(
        *heads_first, attn_mask=visible, scale=layer.scaling, enable_gqa=True
    )
    return attended.transpose(0, 1)
