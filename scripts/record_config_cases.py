#!/usr/bin/env python3
"""Ask the real engine what it makes of the config cases of the tests, and write it into them.

usage: record_config_cases.py tests/hf_config/cases.json

Run it with the Python of an environment that holds sglang 0.5.23 (and with it
transformers 5.19.0). A case is `base` with keys set and keys dropped. Written are, of the attributes that
can change a draft's build, those that are not as the config gives them, and those
that are missing; or the refusal. The settling of the quantization is left out.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from sglang.srt.configs.model_config import ModelConfig

WATCHED = (
    "architectures", "model_type", "hidden_size", "intermediate_size", "num_hidden_layers",
    "num_attention_heads", "num_key_value_heads", "head_dim", "v_head_dim", "vocab_size", "hidden_act",
    "rms_norm_eps", "attention_bias", "max_position_embeddings", "context_len", "sliding_window",
    "layer_types", "is_causal", "rope_parameters", "rope_theta", "partial_rotary_factor",
    "tie_word_embeddings", "dtype", "gating", "num_attention_heads_per_layer",
)  # fmt: skip


def plain(value: Any) -> Any:
    return str(value).removeprefix("torch.") if isinstance(value, torch.dtype) else value


def ask(config: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "config.json").write_text(json.dumps(config))
        try:
            model = ModelConfig(
                folder,
                trust_remote_code=False,
                is_draft_model=True,
                dtype="bfloat16",
                speculative_algorithm="DFLASH",
            )
        except Exception as error:
            return {"refusal": type(error).__name__}
    found = {
        name: plain(getattr(model.hf_config, name)) for name in WATCHED if hasattr(model.hf_config, name)
    }
    changed = {
        n: v for n, v in found.items() if n not in config or (v, type(v)) != (config[n], type(config[n]))
    }
    return {"attributes": changed, "missing": [n for n in WATCHED if n in config and n not in found]}


def main(path: str) -> None:
    document = json.loads(Path(path).read_text())
    ModelConfig._verify_quantization = lambda self: None
    rows: list[str] = []
    for case in document.pop("cases"):
        config = {k: v for k, v in {**document["base"], **case["set"]}.items() if k not in case["drop"]}
        answer = ask(config)
        rows.append(json.dumps({"set": case["set"], "drop": case["drop"], **answer}))
    head = json.dumps(document, indent=1).removesuffix("\n}")
    body = ",\n".join(rows)
    Path(path).write_text(f'{head},\n "cases": [\n{body}\n]}}\n')


if __name__ == "__main__":
    main(sys.argv[1])
