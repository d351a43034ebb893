"""The target that a draft is served beside: vLLM makes no draft without one."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

QWEN3: Final[Mapping[str, Any]] = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "intermediate_size": 256,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "hidden_act": "silu",
    "attention_bias": False,
    "rms_norm_eps": 1e-6,
    "max_position_embeddings": 4096,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1e7},
    "tie_word_embeddings": False,
    "dtype": "bfloat16",
}
"""What a draft's build does not hang on."""

HEADS: Final = ("num_attention_heads", "num_key_value_heads")
"""What each rank has as many of as stand above, so that any number of ranks can share the target."""


def target_config(numbers: Mapping[str, Any], ranks: int = 1) -> dict[str, Any]:
    """The config of a small Qwen3 with these layers, width and vocabulary, for so many ranks."""
    return {**QWEN3, **{key: QWEN3[key] * ranks for key in HEADS}, **numbers}


@contextmanager
def target_folder(numbers: Mapping[str, int]) -> Iterator[str]:
    """The folder of a Qwen3 with these layers, width and vocabulary: its config is all that is read of it."""
    with TemporaryDirectory(prefix="dflash-audit-") as scratch:
        Path(scratch, "config.json").write_text(json.dumps(target_config(numbers)))
        yield scratch
