"""The few attributes of a server's model runner that an attention backend reads.

Source: SGLang 0.5.23 `srt/layers/attention/triton_backend.py`, `TritonAttnBackend.__init__`.
"""

from typing import Any

import torch
from sglang.srt.mem_cache.allocator.token import TokenToKVPoolAllocator
from sglang.srt.mem_cache.kv_index_translator import KVIndexTranslator
from sglang.srt.mem_cache.memory_pool import MHATokenToKVPool, ReqToTokenPool
from sglang.srt.speculative.spec_info import SpeculativeAlgorithm

from dflash_audit.engines.sglang_installed.child.draft import Draft


class Runner:
    """Stands for the ModelRunner of a draft worker, with room for `requests` of `tokens` each."""

    def __init__(self, draft: Draft, rows: int, requests: int, tokens: int, device: torch.device) -> None:
        model = draft.model
        attention = model.layers[0].self_attn
        slots = (requests + 1) * tokens
        where = str(device)
        self.model_config = draft.model_config
        self.device = where
        self.gpu_id = device.index or 0
        self.page_size = 1
        self.is_draft_worker = True
        self.spec_algorithm = SpeculativeAlgorithm.DFLASH
        self.dtype = self.kv_cache_dtype = torch.bfloat16
        self.sliding_window_size = model.get_attention_sliding_window_size()
        self.req_to_token_pool = ReqToTokenPool(
            size=requests + 1, max_context_len=tokens, device=where, enable_memory_saver=False
        )
        self.token_to_kv_pool = MHATokenToKVPool(
            size=slots,
            page_size=1,
            dtype=torch.bfloat16,
            head_num=attention.num_kv_heads,
            head_dim=attention.head_dim,
            layer_num=len(model.layers),
            device=where,
            enable_memory_saver=False,
            enable_alt_stream=False,
        )
        self.token_to_kv_pool_allocator = TokenToKVPoolAllocator(
            slots, torch.bfloat16, where, self.token_to_kv_pool, need_sort=False
        )
        self.kv_index_translator = KVIndexTranslator(
            req_to_token=self.req_to_token_pool.req_to_token,
            token_to_kv_pool_allocator=self.token_to_kv_pool_allocator,
            token_to_kv_pool=self.token_to_kv_pool,
            page_size=1,
            device=where,
            is_draft_worker=True,
        )
        self._rows = rows

    def decode_num_tokens_per_req(self, **_: Any) -> int:
        return self._rows
