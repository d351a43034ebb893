"""A draft of many tensors in many files, for measuring: a tenth of them its own, the rest of a target.

It is quantized to 8 bits, each linear in three tensors, and lies beside experts of a mixture, as where a
whole model was saved with its draft. The files are sparse.
"""

import json
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from materialize import write_zeros  # noqa: E402

from dflash_audit.sources.weight_files import INDEX  # noqa: E402

HIDDEN: Final = 64
HEADS: Final = 4
KV_HEADS: Final = 2
HEAD_DIM: Final = 16
MLP: Final = 128
TAPS: Final = 2
GROUP: Final = 32
EXPERTS: Final = 256

Tensors = dict[str, tuple[str, list[int]]]

LINEARS: Final = {
    "self_attn.q_proj": (HEADS * HEAD_DIM, HIDDEN),
    "self_attn.k_proj": (KV_HEADS * HEAD_DIM, HIDDEN),
    "self_attn.v_proj": (KV_HEADS * HEAD_DIM, HIDDEN),
    "self_attn.o_proj": (HIDDEN, HEADS * HEAD_DIM),
    "mlp.gate_proj": (MLP, HIDDEN),
    "mlp.up_proj": (MLP, HIDDEN),
    "mlp.down_proj": (HIDDEN, MLP),
}
NORMS: Final = {
    "input_layernorm": HIDDEN,
    "post_attention_layernorm": HIDDEN,
    "self_attn.q_norm": HEAD_DIM,
    "self_attn.k_norm": HEAD_DIM,
}
PER_LAYER: Final = 3 * len(LINEARS) + len(NORMS)


def write_large_draft(folder: Path, tensors: int, per_file: int = 200) -> Path:
    """Write a draft of so many tensors into a folder, so many a file, with an index."""
    named = tensors_of(tensors)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config(layers_of(tensors)), indent=1))
    names = [*named]
    parts = [names[at : at + per_file] for at in range(0, len(names), per_file)]
    weight_map = {}
    for number, part in enumerate(parts, 1):
        file = f"model-{number:05}-of-{len(parts):05}.safetensors"
        write_zeros(folder / file, {name: named[name] for name in part})
        weight_map.update(dict.fromkeys(part, file))
    (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    return folder


def layers_of(tensors: int) -> int:
    """The draft's layers: a tenth of so many tensors."""
    return max(1, tensors // 10 // PER_LAYER)


def tensors_of(tensors: int) -> Tensors:
    """So many of them: the draft's, and those that it lies beside."""
    own = own_tensors(layers_of(tensors))
    return own | dict(islice(foreign_tensors(), tensors - len(own)))


def own_tensors(layers: int) -> Tensors:
    """Those of the draft."""
    found: Tensors = {"norm.weight": ("BF16", [HIDDEN]), "hidden_norm.weight": ("BF16", [HIDDEN])}
    found |= packed("fc", (HIDDEN, TAPS * HIDDEN))
    for layer in range(layers):
        for name, size in NORMS.items():
            found[f"layers.{layer}.{name}.weight"] = "BF16", [size]
        for name, shape in LINEARS.items():
            found |= packed(f"layers.{layer}.{name}", shape)
    return found


def packed(name: str, shape: tuple[int, int]) -> Tensors:
    """A linear in symmetric 8-bit groups."""
    rows, columns = shape
    return {
        f"{name}.weight_packed": ("I32", [rows, columns // 4]),
        f"{name}.weight_scale": ("BF16", [rows, columns // GROUP]),
        f"{name}.weight_shape": ("I64", [2]),
    }


def foreign_tensors() -> Iterator[tuple[str, tuple[str, list[int]]]]:
    """Without an end: those of a mixture of experts."""
    layer = 0
    while True:
        for expert in range(EXPERTS):
            for part in ("gate_proj", "up_proj", "down_proj"):
                yield f"target.layers.{layer}.mlp.experts.{expert}.{part}.weight", ("BF16", [8, 8])
        layer += 1


def config(layers: int) -> dict[str, Any]:
    return {
        "architectures": ["DFlashDraftModel"],
        "model_type": "qwen3",
        "hidden_size": HIDDEN,
        "intermediate_size": MLP,
        "num_hidden_layers": layers,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_DIM,
        "vocab_size": 64,
        "max_position_embeddings": 4096,
        "rms_norm_eps": 1e-06,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1000000},
        "hidden_act": "silu",
        "attention_bias": False,
        "dtype": "bfloat16",
        "block_size": 8,
        "num_target_layers": 4,
        "layer_types": ["full_attention"] * layers,
        "is_causal": False,
        "tie_word_embeddings": False,
        "dflash_config": {"mask_token_id": 63, "target_layer_ids": [*range(TAPS)]},
        "quantization_config": {
            "quant_method": "compressed-tensors",
            "format": "pack-quantized",
            "config_groups": {
                "group_0": {
                    "targets": ["Linear"],
                    "weights": {
                        "num_bits": 8,
                        "type": "int",
                        "symmetric": True,
                        "strategy": "group",
                        "dynamic": False,
                        "group_size": GROUP,
                    },
                    "input_activations": None,
                }
            },
            "ignore": ["lm_head"],
        },
    }
