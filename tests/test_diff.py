"""The command `diff` as a process: what it says of two checkpoints, and its exit code."""

import copy
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hub.drafts import single
from hub.fake_hub import FakeHub, serve
from jsonschema import Draft202012Validator
from materialize import materialize, write_zeros
from test_cli import FIXTURES, SEED, run

DENSE = FIXTURES / "seed-bf16"
CASE = FIXTURES / "cases" / "dense-dflash2"

SHARDS = ("q_proj", "k_proj", "v_proj")
QUANTIZED = ("self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")
"""What the seed's recipe quantizes in a layer."""


def validator() -> Any:
    schema = json.loads(run("schema", "diff").stdout)
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def diff(*words: str | Path) -> dict[str, Any]:
    done = run("diff", *map(str, words), "--json")
    said: dict[str, Any] = json.loads(done.stdout)
    assert [error.message for error in validator().iter_errors(said)] == []
    assert done.returncode == said["exit_code"]
    return said


def changed(folder: Path, **tensors: tuple[str, list[int]] | None) -> Path:
    """The dense case with these tensors (`__` for a dot) in place of its own, None for gone."""
    layout = json.loads((CASE / "tensors.json").read_text())
    layout.update({name.replace("__", "."): info for name, info in tensors.items()})
    materialize(CASE, folder)
    write_zeros(folder / "model.safetensors", {name: info for name, info in layout.items() if info})
    return folder


def names(changes: list[dict[str, Any]], side: str) -> set[str]:
    """Those that this side alone has."""
    other = {"a": "b", "b": "a"}[side]
    return {change["name"] for change in changes if change[other] is None}


def engine(said: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = (engine for engine in said["engines"] if engine["name"] == name)
    assert isinstance(found, dict)
    return found


def test_what_the_quantization_of_the_seed_changed() -> None:
    said = diff(DENSE, SEED)
    assert (said["same"], said["exit_code"]) == (False, 1)
    quantized = ["fc", *(f"layers.{layer}.{module}" for layer in (0, 1) for module in QUANTIZED)]
    assert names(said["tensors"], "a") == {f"{module}.weight" for module in quantized}
    assert names(said["tensors"], "b") == {
        f"{module}.{part}"
        for module in quantized
        for part in ("weight_packed", "weight_scale", "weight_shape")
    }
    release, following = engine(said, "sglang-0.5.23"), engine(said, "sglang-next")
    assert [release[side]["verdict"] for side in "ab"] == ["pass", "fail"]
    assert [following[side]["verdict"] for side in "ab"] == ["pass", "pass"]
    # The release asks for a bare name, and loses q, k, v and fc; see the README.
    qkv = next(m for m in release["modules"] if m["name"] == "layers.1.self_attn.qkv_proj")
    assert qkv["b"]["prefix"] == "qkv_proj" != qkv["a"]["prefix"]
    dropped = {t["name"] for t in release["tensors"] if t["b"]["outcome"] == "dropped"}
    assert dropped == {
        *(f"layers.{layer}.self_attn.{shard}.weight" for layer in (0, 1) for shard in SHARDS),
        *(f"fc.{part}" for part in ("weight_packed", "weight_scale", "weight_shape")),
    }
    assert {gap["name"] for gap in release["missing"]} == {
        "fc.weight",
        *(
            f"layers.{layer}.self_attn.qkv_proj.{part}"
            for layer in (0, 1)
            for part in ("weight_packed", "weight_scale", "weight_shape")
        ),
    }
    assert all(gap["a"] is None and gap["b"] == {"missing": ["all"]} for gap in release["missing"])
    assert (following["missing"], following["tensors"], following["resized"]) == ([], [], [])
    assert {m["name"] for m in following["modules"]} == {
        "fc",
        *(
            f"layers.{i}.{m}"
            for i in (0, 1)
            for m in ("self_attn.o_proj", "mlp.gate_up_proj", "mlp.down_proj")
        ),
    }


def test_its_text_folds_the_layers() -> None:
    said = run("diff", str(DENSE), str(SEED))
    lines = said.stdout.splitlines()
    assert said.returncode == 1
    assert "  sglang-0.5.23  serves -> does not serve" in lines
    assert "    layers.0-1.mlp.{down_proj,gate_proj,up_proj}.weight" in lines
    assert (
        lines[lines.index("  loaded -> dropped") + 1]
        == "    layers.0-1.self_attn.{k_proj,q_proj,v_proj}.weight"
    )
    assert "  asked as its name -> qkv_proj" in lines
    assert not any(line.strip().startswith("layers.0.") for line in lines)


def test_the_same_twice_is_nothing(tmp_path: Path) -> None:
    said = diff(SEED, SEED)
    assert said["same"] and said["exit_code"] == 0
    assert all(engine["same"] for engine in said["engines"])
    told = run("diff", str(SEED), str(SEED)).stdout
    assert "Nothing else differs" in told
    # Another config.json that changes nothing that is built or loaded is no difference either.
    other = materialize(CASE, tmp_path / "other")
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps({**config, "transformers_version": "9.9"}))
    assert diff(changed(tmp_path / "one"), other)["same"]


@pytest.mark.parametrize("swapped", [False, True])
def test_a_tensor_that_is_lost(swapped: bool, tmp_path: Path) -> None:
    sides = [changed(tmp_path / "a"), changed(tmp_path / "b", layers__1__self_attn__k_proj__weight=None)]
    said = diff(*(reversed(sides) if swapped else sides))
    has, lacks = ("b", "a") if swapped else ("a", "b")
    (lost,) = said["tensors"]
    assert lost["name"] == "layers.1.self_attn.k_proj.weight"
    assert lost[lacks] is None and lost[has]["dtype"] == "BF16"
    for name in ("sglang-0.5.23", "sglang-next"):
        one = engine(said, name)
        (gap,) = one["missing"]
        assert (gap["name"], gap[has], gap[lacks]) == (
            "layers.1.self_attn.qkv_proj.weight",
            None,
            {"missing": ["k"]},
        )
        assert (one[has]["verdict"], one[lacks]["verdict"]) == ("pass", "fail")


def test_another_shape_and_dtype(tmp_path: Path) -> None:
    before = json.loads((CASE / "tensors.json").read_text())["norm.weight"]
    said = diff(changed(tmp_path / "a"), changed(tmp_path / "b", norm__weight=("F32", before[1])))
    assert said["tensors"] == [
        {
            "name": "norm.weight",
            "a": {"dtype": before[0], "shape": before[1]},
            "b": {"dtype": "F32", "shape": before[1]},
        }
    ]
    (way,) = engine(said, "sglang-next")["tensors"]
    assert way["a"]["cast"] is None
    assert way["b"]["cast"] == {"to": "bfloat16", "lossy": False}
    text = run("diff", str(tmp_path / "a"), str(tmp_path / "b")).stdout
    assert "  dtype BF16 -> F32" in text
    assert "  cast none -> to bfloat16" in text


def test_an_engine_alone_may_be_asked(tmp_path: Path) -> None:
    said = diff(DENSE, SEED, "--engine", "sglang-next")
    assert [engine["name"] for engine in said["engines"]] == ["sglang-next"]
    assert "Did you mean" in run("diff", str(DENSE), str(SEED), "--engine", "sglang-nxt").stderr


def test_the_conditions_are_both_sides(tmp_path: Path) -> None:
    one = changed(tmp_path / "a")
    said = run("diff", str(one), str(one), "--quantization", "fp8")
    assert said.returncode == 0
    assert "fp8" in said.stdout


def test_the_target_is_both_sides(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    config = {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "num_hidden_layers": 2}
    (tmp_path / "target" / "config.json").write_text(json.dumps(config))
    alone, beside = diff(DENSE, DENSE), diff(DENSE, DENSE, "--target", tmp_path / "target")
    for said, verdict in ((alone, "pass"), (beside, "fail")):
        found = engine(said, "sglang-next")
        assert (found["a"]["verdict"], found["b"]["verdict"]) == (verdict, verdict)
        assert said["same"]


def test_a_target_that_is_not_there(tmp_path: Path) -> None:
    done = run("diff", str(DENSE), str(DENSE), "--target", str(tmp_path / "none"))
    assert (done.returncode, done.stdout) == (3, "")
    assert len(done.stderr.splitlines()) == 1


def test_two_revisions_of_a_repo(tmp_path: Path) -> None:
    with serve(FakeHub()) as hub:
        repo = hub.repo("org/draft", single(tmp_path))
        files = single(tmp_path)
        config = json.loads(files["config.json"])
        changed_config = json.dumps({**config, "architectures": ["DFlashDraftModel"]}).encode()
        repo.push({**files, "config.json": changed_config}, "refs/pr/1")
        home = str(tmp_path / "home")

        def asked(*words: str) -> subprocess.CompletedProcess[str]:
            return run(*words, HF_ENDPOINT=hub.url, HF_HOME=home, HF_HUB_DISABLE_TELEMETRY="1", no_proxy="*")

        done = asked("diff", "org/draft", "org/draft@refs/pr/1", "--json")
        said = json.loads(done.stdout)
        assert done.returncode == 1
        assert [said[side]["commit"] for side in "ab"] == [repo.refs["main"], repo.refs["refs/pr/1"]]
        assert said["b"]["revision"] == "refs/pr/1"
        assert said["tensors"] == []
        names = [*["DFlashDraftModel"] * 3, "DFlashQwen3ForCausalLM"]
        assert sorted(e["b"]["model_class"] for e in said["engines"]) == names
        gone = asked("diff", "org/draft", "org/draft@v9")
        assert (gone.returncode, gone.stdout) == (3, "")
        assert gone.stderr == "dflash-audit: org/draft: the repo has no such revision\n"


@pytest.mark.parametrize("words", [(SEED, "nothing"), ("nothing", SEED), ("nothing", "nothing")])
def test_what_cannot_be_read(words: tuple[str | Path, ...], tmp_path: Path) -> None:
    said = diff(*words)
    assert (said["exit_code"], said["same"], said["engines"], said["tensors"]) == (3, False, [], [])
    failed = [side for side, word in zip("ab", words, strict=True) if word == "nothing"]
    assert [side for side in "ab" if said[side]["error"]] == failed
    done = run("diff", *map(str, words))
    assert (done.returncode, done.stdout) == (3, "")
    assert len(done.stderr.splitlines()) == 1


def test_a_wrong_command_line() -> None:
    assert run("diff", str(SEED)).returncode == 2
    assert run("diff", str(SEED), str(SEED), "--tp", "0").returncode == 2


def test_names_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    evil = "layers.0.\x1b[31mred\x07\n::error::[bold]|<script>.weight"
    one, other = changed(tmp_path / "a"), changed(tmp_path / "b\x1b[31m", **{evil: ("BF16", [1])})
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps({**config, "architectures": ["\x1b[31mNo\nSuch"]}))
    done = run("diff", str(one), str(other))
    assert done.returncode == 1
    assert all(line.isprintable() for line in done.stdout.splitlines())
    assert not any(line.lstrip().startswith("::") for line in done.stdout.splitlines())
    assert "[bold]|<script>" in done.stdout
    said = run("diff", str(one), str(other), "--json").stdout
    assert said.isascii() and said.count("\n") == 1
    assert evil in names(json.loads(said)["tensors"], "b")


def test_the_schema_takes_no_other_keys() -> None:
    said = diff(DENSE, SEED)
    check = validator()
    for path in ((), ("a",), ("engines", 0), ("engines", 0, "modules", 0), ("engines", 0, "modules", 0, "b")):
        broken = copy.deepcopy(said)
        reached: Any = broken
        for step in path:
            reached = reached[step]
        key = next(iter(reached))
        reached["more"] = 1
        assert not check.is_valid(broken), path
        del reached["more"], reached[key]
        assert not check.is_valid(broken), (path, key)


def test_schemas_by_name() -> None:
    assert run("schema", "report").stdout == run("schema").stdout
    assert "Did you mean diff?" in run("schema", "dif").stderr
