"""Which parameters need no filling, and which are taken away where nothing fills them: closed lists.

Source: vLLM 0.33.0 `model_executor/models/qwen3_dflash.py` (`mask_embedding`, the table to the target's
ids, the target's embedding and head where a draft has none), `model_executor/layers/quantization/kv_cache.py`
(scales of the cache, `prob_scale`) and `modelopt.py` (`_DropInputScale`, whose scale alone is in the
model's dtype); `gemma4_mtp.py` (`layer_scalar`, one) and `gemma4_dspark.py` (`normalizer`).
"""

from typing import Final

from dflash_audit.engines.installed.process import Record
from dflash_audit.engines.installed.reading import Unfilled
from dflash_audit.engines.vllm.gemma4 import FILLED_BUFFERS

CACHE: Final = frozenset(f"{each}_{kind}" for each in ("q", "k", "v") for kind in ("scale", "zero_point"))
OWN: Final = frozenset(("mask_embedding", "draft_id_to_target_id", *FILLED_BUFFERS))
TARGETS: Final = ("embed_tokens", "lm_head")


def unfilled(module: Record, parameter: Record, act_order: bool) -> Unfilled:
    """As `Reading.unfilled`."""
    del act_order
    holder, name = module["name"].rpartition(".")[2], parameter["name"]
    in_cache = holder == "attn" and name in CACHE
    dropped = (holder == "attn" and name == "prob_scale") or (
        name == "input_scale" and parameter["dtype"] == "bfloat16"
    )
    return Unfilled(name in OWN or holder in TARGETS or in_cache, dropped)
