"""Make the seed fixtures: a small DFlash2 draft, dense and quantized.

    python scripts/make_seed.py fixtures

writes `seed-bf16`, random numbers of a trained draft's size, and `seed-w8a16`,
the same after llm-compressor's `model_free_ptq` to 8-bit weights, with the
layers left dense that the published W8A16 drafts leave dense. Run it with the
Python of an environment that holds torch and llm-compressor; the fixtures come
from torch 2.13.0 (CPU), llmcompressor 0.14.0.1, compressed-tensors 0.19.0,
safetensors 0.8.0 and Python 3.11.
"""

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from llmcompressor import model_free_ptq
from safetensors.torch import save_file

HIDDEN, INTERMEDIATE, HEAD, VOCABULARY, RANK = 128, 256, 64, 256, 16
HEADS, KV_HEADS, LAYERS = 4, 2, 2
TAPS, CONV_GROUP = 2, 16
TARGET_LAYERS = [1, 3]

CONFIG = {
    "architectures": ["DFlash2DraftModel"],
    "model_type": "qwen3",
    "attention_bias": False,
    "attention_dropout": 0.0,
    "is_causal": False,
    "dflash_config": {
        "block_size": 8,
        "conv_group_size": CONV_GROUP,
        "conv_kernel_size": TAPS,
        "mask_token_id": 250,
        "selector_rank": RANK,
        "selector_top_k": 4,
        "target_layer_ids": TARGET_LAYERS,
    },
    "head_dim": HEAD,
    "hidden_act": "silu",
    "hidden_size": HIDDEN,
    "intermediate_size": INTERMEDIATE,
    "layer_types": ["sliding_attention"] * LAYERS,
    "max_position_embeddings": 4096,
    "num_attention_heads": HEADS,
    "num_hidden_layers": LAYERS,
    "num_key_value_heads": KV_HEADS,
    "num_target_layers": 8,
    "rms_norm_eps": 1e-06,
    "rope_parameters": {"rope_theta": 10000000.0, "rope_type": "default"},
    "sliding_window": 128,
    "use_sliding_window": True,
    "tie_word_embeddings": False,
    "vocab_size": VOCABULARY,
    "dtype": "bfloat16",
}

IGNORE = [
    r"re:.*self_attn\.(q|k|v)_proj$",
    r"re:.*candidate_selector.*",
    r"re:.*kernel_projection$",
    r"re:.*norm.*",
]


def shapes() -> Iterator[tuple[str, tuple[int, ...]]]:
    """The tensors of a draft and their shapes."""
    yield "fc.weight", (HIDDEN, len(TARGET_LAYERS) * HIDDEN)
    yield "hidden_norm.weight", (HIDDEN,)
    yield "norm.weight", (HIDDEN,)
    yield "candidate_selector.hidden_projection.weight", (RANK, HIDDEN)
    yield "candidate_selector.predecessor_codebook", (VOCABULARY, RANK)
    yield "candidate_selector.successor_codebook", (VOCABULARY, RANK)
    for layer in range(LAYERS):
        at = f"layers.{layer}."
        yield at + "input_layernorm.weight", (HIDDEN,)
        yield at + "post_attention_layernorm.weight", (HIDDEN,)
        yield at + "self_attn.q_proj.weight", (HEADS * HEAD, HIDDEN)
        yield at + "self_attn.k_proj.weight", (KV_HEADS * HEAD, HIDDEN)
        yield at + "self_attn.v_proj.weight", (KV_HEADS * HEAD, HIDDEN)
        yield at + "self_attn.o_proj.weight", (HIDDEN, HEADS * HEAD)
        yield at + "self_attn.q_norm.weight", (HEAD,)
        yield at + "self_attn.k_norm.weight", (HEAD,)
        yield at + "mlp.gate_proj.weight", (INTERMEDIATE, HIDDEN)
        yield at + "mlp.up_proj.weight", (INTERMEDIATE, HIDDEN)
        yield at + "mlp.down_proj.weight", (HIDDEN, INTERMEDIATE)
        for conv in ("attention_conv", "mlp_conv"):
            yield f"{at}{conv}.base_kernel", (2, TAPS, HIDDEN)
            yield f"{at}{conv}.kernel_projection.weight", (2 * TAPS * HIDDEN // CONV_GROUP, HIDDEN)


def values(name: str, shape: tuple[int, ...], generator: torch.Generator) -> Any:
    """Numbers near those of a trained draft: norms near one, the rest small."""
    noise = torch.randn(shape, generator=generator) * 0.02
    if "norm" in name:
        noise += 1
    elif name.endswith("base_kernel"):
        noise[:, 0] += 1  # the tap on the token itself passes it on
    return noise.to(torch.bfloat16)


def main() -> None:
    fixtures = Path(sys.argv[1])
    dense, quantized = fixtures / "seed-bf16", fixtures / "seed-w8a16"
    for folder in (dense, quantized):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    generator = torch.Generator().manual_seed(0)
    tensors = {name: values(name, shape, generator) for name, shape in shapes()}
    save_file(tensors, dense / "model.safetensors", metadata={"format": "pt"})
    (dense / "config.json").write_text(json.dumps(CONFIG, indent=2) + "\n")
    model_free_ptq(dense, quantized, scheme="W8A16", ignore=IGNORE, device="cpu")


if __name__ == "__main__":
    main()
