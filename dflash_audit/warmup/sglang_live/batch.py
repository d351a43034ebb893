"""A minimal batch: the blocks of a few requests, each behind its context, in the pools of a runner.

Source: SGLang 0.5.23 `srt/speculative/dflash_worker_v2.py`.
"""

from dataclasses import dataclass
from typing import Any

import torch
from sglang.srt.model_executor.forward_batch_info import CaptureHiddenMode, ForwardBatch, ForwardMode
from sglang.srt.speculative.draft_worker_common import make_draft_block_spec_info
from sglang.srt.speculative.spec_info import SpeculativeAlgorithm

from dflash_audit.warmup.reference.inputs import Inputs
from dflash_audit.warmup.sglang_live.pools import Runner


@dataclass(frozen=True, slots=True)
class Batch:
    """`context_slots` are the pool's slots of each request's context, `forward_batch` SGLang's own batch."""

    ids: torch.Tensor
    context_slots: tuple[torch.Tensor, ...]
    forward_batch: Any


def make_batch(runner: Runner, inputs: Inputs, rows: int) -> Batch:
    """Give every request its slots, the context's and the block's behind one another."""
    device = inputs.features.device
    lengths = inputs.lengths.tolist()
    requests = len(lengths)
    table = runner.req_to_token_pool.req_to_token
    places = torch.arange(1, requests + 1, dtype=torch.int64, device=device)
    first = 1
    for place, length in enumerate(lengths, start=1):
        end = first + length + rows
        table[place, : length + rows] = torch.arange(first, end, dtype=torch.int32, device=device)
        first = end
    slots = [table[place].long() for place in range(1, requests + 1)]
    block_slots = torch.cat([s[n : n + rows] for s, n in zip(slots, lengths, strict=True)])
    masks = inputs.anchors.new_full((requests, rows - 1), inputs.mask_id)
    ids = torch.cat((inputs.anchors.unsqueeze(-1), masks), dim=-1)
    before = inputs.lengths.to(torch.int64)
    after = torch.tensor([length + rows for length in lengths])
    batch = ForwardBatch(
        forward_mode=ForwardMode.TARGET_VERIFY,
        batch_size=requests,
        input_ids=ids.flatten(),
        req_pool_indices=places,
        seq_lens=before,
        seq_lens_cpu=after,
        seq_lens_sum=int(after.sum()),
        out_cache_loc=block_slots,
        positions=(before[:, None] + torch.arange(rows, device=device)).flatten(),
        spec_algorithm=SpeculativeAlgorithm.DFLASH,
        spec_info=make_draft_block_spec_info(draft_token_num=rows, device=device),
        capture_hidden_mode=CaptureHiddenMode.NULL,
        num_token_non_padded=None,
        global_num_token_non_padded_cpu=requests * rows,
        can_run_decode_cuda_graph=False,
    )
    translator = runner.kv_index_translator
    plan = translator.plan(
        req_pool_indices=places,
        seq_lens=before,
        seq_lens_cpu=after,
        write_virtual=block_slots,
        read_extent=rows,
    )
    plan.bind(batch, translator)
    return Batch(ids, tuple(s[:n] for s, n in zip(slots, lengths, strict=True)), batch)
