"""Layouts that an engine takes and that are odd, and layouts that cannot be read, beside good ones."""

import json
from pathlib import Path
from typing import Any

import pytest
from materialize import materialize, write_zeros

from dflash_audit.auditing import Request, audit
from dflash_audit.errors import Unreadable
from dflash_audit.formats import render
from dflash_audit.formats.screen import Screen
from dflash_audit.report import Report
from dflash_audit.sources.disk import read_path
from dflash_audit.sources.remarks import Remark
from dflash_audit.sources.weight_files import INDEX

CASE = Path(__file__).parents[1] / "fixtures" / "cases" / "dense-dflash2"

Layout = dict[str, tuple[str, list[int]]]

A, B = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
W: tuple[str, list[int]] = ("BF16", [2])


def folder(path: Path, files: dict[str, Layout], index: dict[str, str] | None = None) -> Path:
    (path / "config.json").write_text("{}")
    for name, tensors in files.items():
        write_zeros(path / name, tensors)
    if index is not None:
        (path / INDEX).write_text(json.dumps({"weight_map": index}))
    return path


BOTH = {A: {"a": W}, B: {"b": W}}

# what is odd, files, index, remarks as (kind, subject, a part of the message)
ODD: list[tuple[str, dict[str, Layout], dict[str, str] | None, list[tuple[str, str, str]]]] = [
    ("nothing", BOTH, None, []),
    ("nothing, with an index", BOTH, {"a": A, "b": B}, []),
    ("nothing, in two forms", {**BOTH, "consolidated.safetensors": {"c": W}}, {"a": A, "b": B}, []),
    (
        "a tensor in two files",
        {A: {"a": W, "c": W}, B: {"b": W, "c": W}},
        {"a": A, "b": B, "c": A},
        [("duplicate-tensor", "c", f"It is in {A} and in {B}: the engine loads each, and {B} stays.")],
    ),
    (
        "a tensor that the index leaves out",
        {A: {"a": W, "c": W}, B: {"b": W}},
        {"a": A, "b": B},
        [("unlisted-tensor", "c", f"It is in {A} and not in the index")],
    ),
    (
        "a tensor that no file holds",
        BOTH,
        {"a": A, "b": B, "c": B},
        [("wrong-index-entry", "c", f"The index puts it into {B}, but no file that is read holds it.")],
    ),
    (
        "a tensor in another file",
        BOTH,
        {"a": B, "b": B, "c": A},
        [
            (
                "wrong-index-entry",
                "a",
                f"The index puts it into {B}, but it is in {A}, and loaded from there.",
            ),
            ("wrong-index-entry", "c", f"The index puts it into {A}, but no file that is read holds it."),
        ],
    ),
    (
        "a tensor in a file that is not read",
        BOTH,
        {"a": A, "b": B, "c": "config.json"},
        [("wrong-index-entry", "c", "The index puts it into config.json, but no file")],
    ),
    (
        "a file that the index leaves out",
        {**BOTH, "model.safetensors": {"a": W}, ".hidden.safetensors": {"a": W}},
        {"a": A, "b": B},
        [("unlisted-file", "model.safetensors", "the engine does not read it")],
    ),
    ("GPTQ", {A: {"fc.qweight": ("I32", [2]), "fc.scales": W}}, None, []),
    (
        "MLX",
        {A: {"fc.weight": ("U32", [2]), "fc.scales": W, "fc.biases": W}},
        None,
        [("foreign-layout", "fc.scales", "in the layout of MLX")],
    ),
    (
        "EXL3",
        {A: {"fc.trellis": ("I16", [2]), "fc.suh": W, "fc.svh": W}},
        None,
        [("foreign-layout", "fc.trellis", "in the layout of EXL3")],
    ),
]


@pytest.mark.parametrize(
    ("files", "index", "expected"), [row[1:] for row in ODD], ids=[row[0] for row in ODD]
)
def test_remarks(
    tmp_path: Path,
    files: dict[str, Layout],
    index: dict[str, str] | None,
    expected: list[tuple[str, str, str]],
) -> None:
    remarks = read_path(folder(tmp_path, files, index)).remarks
    assert [(r.kind, r.subject) for r in remarks] == [(kind, subject) for kind, subject, _ in expected]
    for remark, (_, _, part) in zip(remarks, expected, strict=True):
        assert part in remark.message


def test_a_name_twice_in_a_header(tmp_path: Path) -> None:
    entry = b'{"dtype":"U8","shape":[2],"data_offsets":[0,2]}'
    for name, header in (("good", b'{"a":%s}' % entry), ("bad", b'{"a":%s,"a":%s}' % (entry, entry))):
        (tmp_path / name).mkdir()
        folder(tmp_path / name, {})
        content = len(header).to_bytes(8, "little") + header + bytes(2)
        (tmp_path / name / "model.safetensors").write_bytes(content)
    assert read_path(tmp_path / "good").remarks == ()
    message = "The header of model.safetensors names it twice: the last entry counts."
    assert read_path(tmp_path / "bad").remarks == (Remark("duplicate-tensor", "a", message),)


def test_a_name_twice_in_a_header_with_data_for_both(tmp_path: Path) -> None:
    folder(tmp_path, {})
    header = (
        b'{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},'
        b'"a":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}}'
    )
    (tmp_path / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    with pytest.raises(Unreadable, match=r"leave a gap or overlap, and tensor 'a' is given twice$"):
        read_path(tmp_path)


def report(path: Path) -> Report:
    return audit(Request(str(path)))


def copied(tmp_path: Path) -> tuple[Path, Layout]:
    tensors: Layout = json.loads((CASE / "tensors.json").read_text())
    return materialize(CASE, tmp_path), tensors


def odd(said: Report) -> list[tuple[str, str | None, str, int]]:
    return [(f.severity, f.engine, f.subject, f.count) for f in said.findings if f.rule == "odd-layout"]


def test_a_draft_whose_layers_are_there_twice_serves_with_one_warning(tmp_path: Path) -> None:
    path, tensors = copied(tmp_path)
    assert report(path).findings == ()
    twice = {name: info for name, info in tensors.items() if name.endswith(("q_proj.weight", "fc.weight"))}
    write_zeros(path / "z.safetensors", twice)
    said = report(path)
    assert said.exit_code == 0
    assert odd(said) == [("warning", None, "fc.weight and 1 more", 3)]
    assert said.findings[0].subjects == (
        "fc.weight",
        *(f"layers.{i}.self_attn.q_proj.weight" for i in (0, 1)),
    )
    assert len(said.findings) == said.counts["warning"] == 1


def test_a_draft_whose_shard_the_index_forgot(tmp_path: Path) -> None:
    path, tensors = copied(tmp_path)
    write_zeros(path / "more.safetensors", {"fc.weight": tensors["fc.weight"]})
    write_zeros(
        path / "model.safetensors", {name: info for name, info in tensors.items() if name != "fc.weight"}
    )
    assert report(path).exit_code == 0
    (path / INDEX).write_text(json.dumps({"weight_map": dict.fromkeys(tensors, "model.safetensors")}))
    said = report(path)
    assert said.exit_code == 1
    assert odd(said) == [("warning", None, "fc.weight", 1), ("warning", None, "more.safetensors", 1)]


@pytest.mark.parametrize(
    ("name", "content", "kind", "message"),
    [
        ("draft.gguf", b"GGUF", "no-config", "no config.json (draft.gguf is GGUF, which is not read here)"),
        ("weights.npz", b"PK", "no-config", "(weights.npz is a NumPy archive (MLX), which is not read here)"),
        ("model.bin", b"", "no-config", "no config.json (model.bin is pickled, which is not read here)"),
        ("optimizer.bin", b"", "no-config", "no config.json"),
        ("README.md", b"", "no-config", "no config.json"),
    ],
)
def test_folders_without_safetensors(
    tmp_path: Path, name: str, content: bytes, kind: str, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    without = report(tmp_path).error
    assert without is not None and without.kind == kind
    assert without.message.endswith(message)
    (tmp_path / "config.json").write_text("{}")
    with_config = report(tmp_path).error
    assert with_config is not None and with_config.kind == "no-safetensors"
    assert with_config.message == without.message.replace("no config.json", "no .safetensors file")


def test_a_gguf_file_alone(tmp_path: Path) -> None:
    (tmp_path / "draft.gguf").write_bytes(b"GGUF")
    error = report(tmp_path / "draft.gguf").error
    assert error is not None
    assert error.message.endswith(
        "draft.gguf: neither a folder nor a .safetensors file (draft.gguf is GGUF, which is not read here)"
    )


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", INDEX])
def test_a_git_lfs_pointer_in_place_of_a_file(tmp_path: Path, name: str) -> None:
    path, _ = copied(tmp_path)
    assert report(path).error is None
    (path / name).write_text("version https://git-lfs.example/spec/v1\noid sha256:0\nsize 1\n")
    error = report(path).error
    assert error is not None
    why = "a Git LFS pointer, not the file that it stands for (`git lfs pull` fetches that)"
    assert error.message == f"{path / name}: {why}"


def test_every_bad_file_is_named(tmp_path: Path) -> None:
    files = {f"{name}.safetensors": {name: W} for name in "abcd"}
    folder(tmp_path, files, {name: f"{name}.safetensors" for name in "abcde"})
    (tmp_path / "e.safetensors").mkdir()
    for name in "bd":
        (tmp_path / f"{name}.safetensors").write_bytes(b"{}")
    error = report(tmp_path).error
    assert error is not None and error.kind == "malformed-header"
    assert error.message == (
        f"{tmp_path}: 3 of 5 weight files cannot be read:"
        " b.safetensors, d.safetensors: 2 bytes are too few for a safetensors file;"
        f" e.safetensors: {INDEX} names it, and it is not there"
    )


@pytest.mark.parametrize("name", ["/etc/model.safetensors", "../model.safetensors", "a/../../b.safetensors"])
def test_an_index_that_points_out_of_its_folder(tmp_path: Path, name: str) -> None:
    folder(tmp_path, {A: {"a": W}}, {"a": A, "b": name})
    error = report(tmp_path).error
    assert error is not None and error.kind == "bad-index"
    assert error.message == f"{tmp_path / INDEX}: names files outside its folder: {name!r}"


WRONG: list[Any] = [None, True, -1, float("nan"), "\ud800", [None], {}]


def test_a_config_of_wrong_types_is_told_of(tmp_path: Path) -> None:
    path = materialize(CASE.parent / "ct-dflash2-w8a16_seed", tmp_path)
    config = json.loads((path / "config.json").read_text())
    for key in config:
        for value in WRONG:
            (path / "config.json").write_text(json.dumps({**config, key: value}))
            said = report(path)
            assert said.error is None
            assert all(render(form, said, Screen(80, color=False)) for form in ("text", "json"))
