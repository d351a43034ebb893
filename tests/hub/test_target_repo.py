"""A target in a repo of the Hub: what is asked for, and at which revision."""

import json
from pathlib import Path

import pytest
from hub.drafts import INDEX, config, single, weights
from hub.fake_hub import FakeHub

from dflash_audit.auditing import Request, audit
from dflash_audit.errors import Unreadable
from dflash_audit.target import read_target

NAME = "org/target"
CONFIG = {
    "architectures": ["Qwen3ForCausalLM"],
    "num_hidden_layers": 8,
    "hidden_size": 128,
    "vocab_size": 256,
}


def files(scratch: Path) -> dict[str, bytes]:
    """A target in three files, of which the first holds its embedding and the last its head."""
    parts = {
        "1.safetensors": {"model.embed_tokens.weight": ("BF16", [256, 128])},
        "2.safetensors": {"model.layers.0.mlp.up_proj.weight": ("BF16", [128, 128])},
        "3.safetensors": {"lm_head.weight": ("BF16", [256, 128])},
    }
    index = {"weight_map": {tensor: file for file, part in parts.items() for tensor in part}}
    return {
        "config.json": json.dumps(CONFIG).encode(),
        INDEX: json.dumps(index).encode(),
        **{file: weights(part, scratch) for file, part in parts.items()},
    }


def test_two_of_three_files_are_opened(hub: FakeHub, tmp_path: Path) -> None:
    commit = hub.repo(NAME, files(tmp_path)).refs["main"]
    target = read_target(NAME)
    assert target.origin.commit == commit and target.hidden_size == 128
    assert [tensor.name for tensor in (*target.head, *target.embedding)] == [
        "lm_head.weight",
        "model.embed_tokens.weight",
    ]
    asked = {path.rpartition("/")[2] for path in hub.paths()}
    assert asked == {"target?blobs=true", "config.json", INDEX, "1.safetensors", "3.safetensors"}


def test_a_revision_and_a_folder(hub: FakeHub, tmp_path: Path) -> None:
    hub.repo(NAME, {f"base/{name}": content for name, content in files(tmp_path).items()})
    assert read_target(f"{NAME}@main:base/").vocab_size == 256
    with pytest.raises(Unreadable, match="no such revision"):
        read_target(f"{NAME}@other:base/")


def test_a_draft_and_its_target_from_the_hub(hub: FakeHub, tmp_path: Path) -> None:
    hub.repo("org/draft", single(tmp_path))
    hub.repo(NAME, files(tmp_path))
    said = audit(Request("org/draft", target=NAME))
    assert said.error is None and said.exit_code == 0
    assert said.conditions.target is not None and said.conditions.target.id == NAME
    missing = audit(Request("org/draft", target="org/nowhere"))
    assert missing.exit_code == 3 and missing.error is not None
    assert missing.error.message.startswith("org/nowhere: ")


def test_a_target_without_a_config(hub: FakeHub) -> None:
    hub.repo(NAME, {"README.md": config()})
    with pytest.raises(Unreadable, match="no config"):
        read_target(NAME)
