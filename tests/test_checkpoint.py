"""Reading a checkpoint: which files, in which order, and what cannot be read."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from materialize import write_zeros

from dflash_audit.errors import Unreadable
from dflash_audit.sources.checkpoint import MAX_JSON, File, Origin, Tensor
from dflash_audit.sources.disk import read_path
from dflash_audit.sources.weight_files import INDEX

FIXTURES = Path(__file__).parent.parent / "fixtures"


def make(folder: Path, *weights: str, index: Any = None, config: str = "{}") -> Path:
    """A checkpoint whose weight files hold one tensor each, named after the file."""
    (folder / "config.json").write_text(config)
    for name in weights:
        write_zeros(folder / name, {name: ("F32", [1])})
    if index is not None:
        (folder / INDEX).write_text(index if isinstance(index, str) else json.dumps(index))
    return folder


def index_of(*files: Any) -> dict[str, Any]:
    return {"weight_map": {f"tensor {i}": file for i, file in enumerate(files)}}


def refusal(source: Path) -> Unreadable:
    with pytest.raises(Unreadable) as raised:
        read_path(source)
    assert "\n" not in raised.value.message
    return raised.value


@pytest.mark.parametrize(
    ("fixture", "case", "headers", "json_files"),
    [
        ("seed-w8a16", "ct-dflash2-w8a16_seed", 5328, ["config.json", INDEX]),
        ("seed-bf16", "dense-dflash2", 3616, ["config.json"]),
    ],
)
def test_seed_has_the_layout_of_its_case(
    fixture: str, case: str, headers: int, json_files: list[str]
) -> None:
    checkpoint = read_path(FIXTURES / fixture)
    layout = {t.name: [t.dtype, list(t.shape)] for t in checkpoint.tensors}
    assert layout == json.loads((FIXTURES / "cases" / case / "tensors.json").read_text())
    assert checkpoint.config == json.loads((FIXTURES / "cases" / case / "config.json").read_text())
    small = sum((FIXTURES / fixture / n).stat().st_size for n in json_files)
    assert checkpoint.bytes_read == headers + small
    assert checkpoint.bytes_total == (FIXTURES / fixture / "model.safetensors").stat().st_size + small


def test_fields(tmp_path: Path) -> None:
    make(tmp_path, config='{"model_type": "qwen3"}')
    write_zeros(tmp_path / "model.safetensors", {"b": ("BF16", [2, 3]), "a": ("F32", [])})
    checkpoint = read_path(tmp_path)
    assert checkpoint.origin == Origin("local", str(tmp_path))
    assert checkpoint.config == {"model_type": "qwen3"}
    assert checkpoint.tensors == (
        Tensor("a", "F32", (), "model.safetensors"),
        Tensor("b", "BF16", (2, 3), "model.safetensors"),
    )
    assert [t.numel for t in checkpoint.tensors] == [1, 6]
    assert checkpoint.files == (File("model.safetensors", checkpoint.bytes_total - 23, 2),)
    assert checkpoint.bytes_read == checkpoint.bytes_total - 16


@pytest.mark.parametrize(
    ("present", "index", "read"),
    [
        (["b", "a", "C"], None, ["C", "a", "b"]),
        (["model-2", "model-10"], None, ["model-10", "model-2"]),
        (["a", ".hidden"], None, ["a"]),
        (["model", "consolidated"], None, ["model"]),
        (["my-model", "my-consolidated"], None, ["my-model"]),
        (["model", "zconsolidated"], None, ["model", "zconsolidated"]),
        (["model", "consolidated", "b"], None, ["b", "consolidated", "model"]),
        (["model", "consolidated"], ["consolidated"], ["consolidated"]),
        (["b", "a", "c"], ["b", "a", "b"], ["a", "b"]),
        (["a", "folder/b"], ["a", "folder/b"], ["a"]),
    ],
)
def test_files_and_order(
    tmp_path: Path, present: list[str], index: list[str] | None, read: list[str]
) -> None:
    (tmp_path / "folder").mkdir()
    named = index_of(*(f"{n}.safetensors" for n in index)) if index else None
    make(tmp_path, *(f"{n}.safetensors" for n in present), index=named)
    checkpoint = read_path(tmp_path)
    assert [f.name for f in checkpoint.files] == [f"{n}.safetensors" for n in read]
    assert [t.file for t in checkpoint.tensors] == [f"{n}.safetensors" for n in read]


def test_another_index_does_not_count(tmp_path: Path) -> None:
    make(tmp_path, "a.safetensors", "b.safetensors")
    (tmp_path / "consolidated.safetensors.index.json").write_text(json.dumps(index_of("a.safetensors")))
    assert len(read_path(tmp_path).files) == 2


def test_a_name_in_two_files_is_there_twice(tmp_path: Path) -> None:
    make(tmp_path)
    write_zeros(tmp_path / "b.safetensors", {"w": ("F32", [1])})
    write_zeros(tmp_path / "a.safetensors", {"w": ("F32", [2]), "v": ("F32", [1])})
    read = [(t.file, t.name, t.shape) for t in read_path(tmp_path).tensors]
    assert read == [("a.safetensors", "v", (1,)), ("a.safetensors", "w", (2,)), ("b.safetensors", "w", (1,))]


def test_one_file_is_read_alone(tmp_path: Path) -> None:
    make(tmp_path, "a.safetensors", "b.safetensors", index=index_of("a.safetensors"))
    checkpoint = read_path(tmp_path / "b.safetensors")
    assert [t.name for t in checkpoint.tensors] == ["b.safetensors"]
    assert checkpoint.id == str(tmp_path / "b.safetensors")


def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "blobs").mkdir()
    (tmp_path / "snapshot").mkdir()
    make(tmp_path / "blobs", "0123.safetensors")
    os.symlink("../blobs/0123.safetensors", tmp_path / "snapshot" / "model.safetensors")
    os.symlink("../blobs/config.json", tmp_path / "snapshot" / "config.json")
    assert read_path(tmp_path / "snapshot").bytes_total > 0


def test_only_the_header_is_read(tmp_path: Path) -> None:
    make(tmp_path)
    write_zeros(tmp_path / "model.safetensors", {"w": ("F32", [2**32])})  # 16 GiB of nothing
    checkpoint = read_path(tmp_path)
    assert checkpoint.bytes_read < 200
    assert checkpoint.bytes_total > 2**34


def test_json_files_are_read_when_asked_for(tmp_path: Path) -> None:
    make(tmp_path, "model.safetensors")
    (tmp_path / "hf_quant_config.json").write_text('{"quantization": {}}')
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / ".hidden.json").write_text("{}")
    (tmp_path / "folder.json").mkdir()
    files = read_path(tmp_path).json_files
    assert list(files) == ["broken.json", "config.json", "hf_quant_config.json", "list.json"]
    assert files["hf_quant_config.json"] == {"quantization": {}}
    assert files.get("absent.json") is None
    for name, reason in (("broken.json", "not JSON"), ("list.json", "not a JSON object")):
        with pytest.raises(Unreadable, match=f"{name}: {reason}") as raised:
            files[name]
        assert raised.value.kind == "bad-json"


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ("[]", "not a JSON object"),
        ("null", "not a JSON object"),
        ("{", "not JSON"),
        ("", "not JSON"),
        ("\ufeff{}", "not JSON"),
        ("[" * 100_000, "nested too deep"),
        ('{"configuration_files": ["config.4.0.0.json"]}', "configuration_files"),
    ],
)
def test_bad_config(tmp_path: Path, config: str, reason: str) -> None:
    error = refusal(make(tmp_path, "model.safetensors", config=config))
    assert error.kind == "bad-config"
    assert error.message.startswith(f"{tmp_path / 'config.json'}: ")
    assert reason in error.message


def test_config_not_utf8(tmp_path: Path) -> None:
    make(tmp_path, "model.safetensors")
    (tmp_path / "config.json").write_bytes("{}".encode("utf-16"))
    assert refusal(tmp_path).message.endswith("config.json: not UTF-8 (byte 0)")


def test_config_as_python_reads_it(tmp_path: Path) -> None:
    make(tmp_path, "model.safetensors", config='{"a": Infinity, "b": 1, "b": 2}')
    assert read_path(tmp_path).config == {"a": float("inf"), "b": 2}


@pytest.mark.parametrize(
    ("index", "kind"),
    [
        ("{", "bad-index"),
        ("[]", "bad-index"),
        ("{}", "bad-index"),
        ({"weight_map": None}, "bad-index"),
        ({"weight_map": ["model.safetensors"]}, "bad-index"),
        (index_of("model.safetensors", 1), "bad-index"),
        (index_of("model.safetensors", "gone.safetensors"), "missing-shard"),
        (index_of("model.safetensors", "a\0b"), "bad-index"),
        ({"weight_map": {}}, "no-safetensors"),
        (index_of("config.json"), "no-safetensors"),
        (index_of("./model.safetensors"), "no-safetensors"),
    ],
)
def test_bad_index(tmp_path: Path, index: Any, kind: str) -> None:
    assert refusal(make(tmp_path, "model.safetensors", index=index)).kind == kind


def test_missing_shards_are_named(tmp_path: Path) -> None:
    error = refusal(make(tmp_path, "a.safetensors", index=index_of("a.safetensors", "c", "b", "d", "e")))
    assert error.message == (
        f"{tmp_path}: 4 of 5 weight files cannot be read: b, c, d, e: {INDEX} names it, and it is not there"
    )


def test_nothing_there(tmp_path: Path) -> None:
    assert refusal(tmp_path / "absent").kind == "no-such-source"
    assert refusal(Path("a\0b")).kind == "no-such-source"
    assert refusal(tmp_path).kind == "no-config"
    make(tmp_path)
    assert refusal(tmp_path / "config.json").kind == "no-such-source"
    assert refusal(tmp_path).message == f"{tmp_path}: no .safetensors file"
    (tmp_path / "pytorch_model.bin").touch()
    assert "pytorch_model.bin" in refusal(tmp_path).message
    assert refusal(tmp_path).kind == "no-safetensors"


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX files")
def test_files_that_are_none(tmp_path: Path) -> None:
    make(tmp_path)
    weights = tmp_path / "model.safetensors"
    weights.mkdir()
    assert refusal(tmp_path).message == f"{weights}: not a file"
    weights.rmdir()
    os.mkfifo(weights)
    assert refusal(tmp_path).kind == "unreadable-file"
    weights.unlink()
    weights.symlink_to("gone")
    assert refusal(tmp_path).message == f"{weights}: No such file or directory"


def test_json_too_large(tmp_path: Path) -> None:
    make(tmp_path, "model.safetensors")
    os.truncate(tmp_path / "config.json", MAX_JSON + 1)
    assert refusal(tmp_path).kind == "unreadable-file"


def test_malformed_header_names_the_file_on_one_line(tmp_path: Path) -> None:
    make(tmp_path)
    (tmp_path / "a\nb.safetensors").write_bytes(b"{}")
    error = refusal(tmp_path)
    assert error.kind == "malformed-header"
    assert error.message == f"{tmp_path}/a\\nb.safetensors: 2 bytes are too few for a safetensors file"


def test_names_at_the_top_level(tmp_path: Path) -> None:
    make(tmp_path, "model.safetensors")
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "below").touch()
    (tmp_path / ".hidden").touch()
    assert read_path(tmp_path).names == (".hidden", "assets/", "config.json", "model.safetensors")
