"""Print as JSON which attention backend the installed vLLM picks on a card, for each of a list of layers.

    python tests/vllm_installed/ask_backends.py 90 '[[128, false, false, false]]'

A layer is head size, sinks, FP8 cache, a scale for each head.
"""

import json
import sys

from dflash_audit.engines.vllm_installed.child.platform import start_vllm


def main(capability: str, layers: str) -> None:
    start_vllm(int(capability))
    import torch
    from vllm.config import VllmConfig, set_current_vllm_config
    from vllm.platforms import current_platform
    from vllm.v1.attention.selector import AttentionSelectorConfig

    config = VllmConfig()
    found = []
    with set_current_vllm_config(config):
        for head_size, sinks, fp8, by_head in json.loads(layers):
            # `Attention` sets it where the draft's config declares such a cache.
            config.cache_config.cache_dtype = "fp8" if fp8 else "auto"
            asked = AttentionSelectorConfig(
                head_size=head_size,
                dtype=torch.bfloat16,
                kv_cache_dtype=config.cache_config.cache_dtype,
                block_size=None,
                has_sink=sinks,
                use_per_head_quant_scales=by_head,
                use_non_causal=True,
            )
            try:
                found.append(current_platform.get_attn_backend_cls(None, asked))
            except ValueError:
                found.append(None)
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
