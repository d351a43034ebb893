"""The program as a user runs it: words in, text, JSON and exit codes out."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from materialize import materialize, write_zeros
from report_schema import valid

FIXTURES = Path(__file__).parents[1] / "fixtures"
SEED = FIXTURES / "seed-w8a16"


def run(*words: str, cwd: Path | None = None, **more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dflash_audit", *words]
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", **more}
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, check=False)


def report(*words: str) -> dict[str, Any]:
    done = run(*words, "--json")
    parsed: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == parsed["summary"]["exit_code"]
    return valid(parsed)


def name_class(source: Path, architecture: str) -> None:
    """Rewrite what the checkpoint's config.json names for a class."""
    path = source / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "architectures": [architecture]}))


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ([], 0),
        (["--engine", "sglang-next"], 0),
        (["--engine", "sglang-0.5.23"], 1),
        (["--engine", "sglang-next", "--engine", "sglang-0.5.23"], 1),
        (["--engine", "all"], 1),
    ],
)
def test_exit_code_follows_the_gating_engines(options: list[str], code: int) -> None:
    assert run(str(SEED), *options).returncode == code
    assert run(*options, str(SEED)).returncode == code
    assert run("audit", str(SEED), *options).returncode == code


def test_json_keeps_the_contract() -> None:
    said = report(str(SEED))
    assert list(said) == [
        "schema_version", "tool", "source", "config", "conditions", "target", "engines",
        "findings", "skips", "warmup", "error", "summary",
    ]  # fmt: skip
    assert said["schema_version"] == 1
    assert said["tool"]["name"] == "dflash-audit"
    assert said["config"] == {
        "architectures": ["DFlash2DraftModel"],
        "quantization": {"method": "compressed-tensors", "origin": "config.json"},
    }
    assert said["source"]["kind"] == "local"
    assert said["source"]["files"][0]["name"] == "model.safetensors"
    assert 0 < said["source"]["bytes_read"] < said["source"]["bytes_total"]
    assert {e["name"]: (e["gating"], e["verdict"]) for e in said["engines"]} == {
        "sglang-0.5.19": (False, "fail"),
        "sglang-0.5.23": (False, "fail"),
        "sglang-next": (True, "pass"),
        "vllm-0.33.0": (False, "fail"),
    }
    assert list(said["engines"][0]) == [
        "name", "gating", "verdict", "model_class", "quantization",
        "refusal", "parameters", "tensors", "resized", "version", "verdicts", "assumed",
    ]  # fmt: skip
    assert said["summary"] == {
        "errors": 0, "warnings": 1, "notes": 0, "exit_code": 0, "known": 0, "ignored": 0,
    }  # fmt: skip


def test_findings_of_engines_that_do_not_gate_are_listed_and_not_counted() -> None:
    said = report(str(SEED))
    of_release = [f for f in said["findings"] if f["engine"] == "sglang-0.5.23"]
    assert {f["severity"] for f in of_release} == {"error", "warning"}
    assert said["summary"]["errors"] == 0
    everything = report(str(SEED), "--engine", "all")
    errors = [f for f in everything["findings"] if f["severity"] == "error"]
    assert everything["summary"]["errors"] == len(errors) > 0


def test_an_unknown_engine_is_a_usage_error_that_names_the_nearest() -> None:
    done = run(str(SEED), "--engine", "sglang-nxt")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Did you mean sglang-next?" in " ".join(done.stderr.split())


@pytest.mark.parametrize("command", ["audit", "fix", "push", "pr", "diff"])
def test_all_and_a_live_engine_are_both(command: str, tmp_path: Path) -> None:
    """A live engine builds one rank alone, which tells that it was not forgotten."""
    (tmp_path / "sglang").mkdir()
    (tmp_path / "sglang" / "__init__.py").write_text("")
    others = {"push": ["org/name"], "diff": [str(SEED)], "pr": ["1"]}.get(command, [])
    source = "org/name" if command == "pr" else str(SEED)
    words = [command, source, *others, "--engine", "all", "--engine", "sglang@installed", "--tp", "2"]
    path = os.pathsep.join((os.environ.get("PYTHONPATH", ""), str(tmp_path)))
    done = run(*words, PYTHONPATH=path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "sglang@installed builds one rank alone" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ["tree", str(SEED), "--tp", "1,2"],
            "'--tp': this command takes one, and not 2: run it once for each.",
        ),
        (["fix", str(SEED), "--tp", "1,2,4"], "'--tp': this command takes one, and not 3"),
        (["diff", str(SEED), str(SEED), "--tp", "1,2"], "'--tp': this command takes one, and not 2"),
        (["tree", str(SEED), "--tp", "0"], "'--tp': 0 is no number of ranks."),
        (
            [str(SEED), "--quantization", ""],
            "'--quantization': an empty name is no quantization method",
        ),
        ([str(SEED), "--gpu", " "], "'--gpu': an empty name is no card: leave it out instead"),
        ([str(SEED), "--quantization", "q4"], "q4 is no quantization method of an SGLang server."),
    ],
)
def test_a_wrong_value_is_told_with_what_would_do(words: list[str], told: str) -> None:
    done = run(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in " ".join(done.stderr.split())


@pytest.mark.parametrize("words", [[], ["--no-such-option"], ["a", "b"], ["org/a", "--revision", ""]])
def test_a_wrong_command_line_is_a_usage_error(words: list[str]) -> None:
    assert run(*words).returncode == 2


def test_a_source_that_cannot_be_read(tmp_path: Path) -> None:
    done = run(str(tmp_path / "nothing"))
    assert done.returncode == 3
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    said = report(str(tmp_path / "nothing"))
    assert said["error"]["kind"] == "no-such-source"
    assert said["engines"] == []


def test_a_fault_of_the_program_blames_no_checkpoint() -> None:
    probe = (
        "import sys; sys.argv = ['dflash-audit', 'x']\n"
        "import dflash_audit.auditing as module\n"
        "def audit(request): raise KeyError('\\x1b[31m\\n::error::pwned')\n"
        "module.audit = audit\n"
        "from dflash_audit.cli import main\n"
        "main()"
    )
    for asked in ("", "1"):
        environment = {**os.environ, "DFLASH_AUDIT_TRACEBACK": asked}
        command = [sys.executable, "-c", probe]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert (done.returncode, done.stdout) == (3, "")
        *before, last = done.stderr.splitlines()
        assert last.startswith("dflash-audit: the program itself failed (KeyError: ")
        assert "::error::pwned" in last and "\x1b" not in done.stderr
        assert ("DFLASH_AUDIT_TRACEBACK=1 shows where" in last) == (not asked)
        assert (before[:1] == ["Traceback (most recent call last):"]) == bool(asked)
        assert not any(line.startswith("::") for line in before)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json"])
def test_a_file_of_a_checkpoint_names_its_folder(name: str, tmp_path: Path) -> None:
    source = shutil.copytree(SEED, tmp_path / "draft")
    (source / "tokenizer.json").write_text("{}")
    done = run(str(source / name))
    assert done.returncode == 3
    told = f"{source / name}: neither a folder nor a .safetensors file: name its folder, {source}"
    assert done.stderr == f"dflash-audit: {told}\n"
    (source / "config.json").rename(source / "other.json")
    assert "name its folder" not in run(str(source / "other.json")).stderr


def test_a_folder_of_checkpoints_names_them(tmp_path: Path) -> None:
    for name in ("b", "a"):
        shutil.copytree(SEED, tmp_path / name)
    (tmp_path / "empty").mkdir()
    done = run(str(tmp_path))
    assert done.returncode == 3
    assert done.stderr == (
        f"dflash-audit: {tmp_path}: no config.json: name a folder in it that has one (a/, b/)\n"
    )
    for name in "cdefg":
        shutil.copytree(SEED, tmp_path / name)
    assert "(a/, b/, c/, d/, e/, and 2 more)" in run(str(tmp_path)).stderr


@pytest.mark.parametrize("model_type", ["qwen3", "no-such-type"])
def test_the_quantization_that_a_file_declares(model_type: str, tmp_path: Path) -> None:
    source = materialize(FIXTURES / "cases" / "modelopt-nvfp4-hfquant", tmp_path)
    path = source / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "model_type": model_type}))
    said = report(str(source))
    stages = {e["refusal"] and e["refusal"]["stage"] for e in said["engines"]}
    assert ("config" in stages) == (model_type == "no-such-type")
    assert said["config"]["quantization"] == {"method": "NVFP4", "origin": "hf_quant_config.json"}
    # Text alone needs no such file, so a broken one is no news where no engine looks.
    (source / "hf_quant_config.json").write_text("{")
    assert run(str(source)).returncode == (1 if model_type == "no-such-type" else 3)
    if model_type == "no-such-type":
        assert report(str(source))["config"]["quantization"] is None


def test_one_file_beside_its_config() -> None:
    assert report(str(SEED / "model.safetensors"))["summary"]["exit_code"] == 0


def test_the_server_option_that_a_draft_inherits(tmp_path: Path) -> None:
    source = materialize(FIXTURES / "cases" / "dense-dflash2", tmp_path)
    methods = [e["quantization"] for e in report(str(source), "--quantization", "fp8")["engines"]]
    # vLLM gives a draft the method of its own config alone.
    assert methods == ["fp8", "fp8", "fp8", None]
    refused = report(str(source), "--quantization", "gptq_marlin")["engines"][0]["refusal"]
    assert refused["stage"] == "quant_config"


@pytest.mark.parametrize(
    ("option", "word", "meant"),
    [
        ("--quantization", "fb8", "fp8"),
        ("--quantization", "compressed_tensors", "compressed-tensors"),
        ("--speculative-draft-attention-backend", "trtllm-mha", "trtllm_mha"),
        ("--speculative-draft-attention-backend", "flash_infer", "flashinfer"),
    ],
)
def test_a_word_that_no_server_takes_is_a_usage_error(option: str, word: str, meant: str) -> None:
    for words in ([str(SEED)], ["tree", str(SEED)], ["fix", str(SEED)]):
        done = run(*words, option, word)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"Did you mean {meant}?" in " ".join(done.stderr.replace("│", " ").split())


def test_a_class_that_is_not_replayed_is_skipped_and_does_not_fail(tmp_path: Path) -> None:
    source = materialize(FIXTURES / "cases" / "dense-dspark", tmp_path)
    name_class(source, "Lfm2DSparkDraftModel")
    said = report(str(source), "--engine", "sglang-next", "--engine", "sglang-0.5.23")
    assert [e["verdict"] for e in said["engines"]] == ["skipped", "skipped", "skipped", "fail"]
    assert said["summary"]["exit_code"] == 0
    assert any("Lfm2DSparkDraftModel" in skip["reason"] for skip in said["skips"])


def test_a_gpu_is_called_cuda() -> None:
    done = run(str(SEED), "--warmup", "--device", "gpu")
    assert done.returncode == 2
    assert "Did you mean cuda?" in " ".join(done.stderr.replace("│", " ").split())


def test_tree_shows_what_happens_to_each_parameter() -> None:
    done = run("tree", str(SEED), "--engine", "sglang-0.5.23")
    lines = done.stdout.splitlines()
    assert done.returncode == 0
    qkv = next(i for i, line in enumerate(lines) if line.startswith("layers.1.self_attn.qkv_proj"))
    assert "asked as 'qkv_proj'" in lines[qkv]
    assert "UNFILLED" in lines[qkv + 1]
    assert any(line.startswith("DROPPED  fc.weight_packed") for line in lines)
    assert lines[0] == str(SEED)
    assert "UNFILLED" not in run("tree", str(SEED)).stdout


def test_a_folder_that_is_called_as_a_command(tmp_path: Path) -> None:
    shutil.copytree(SEED, tmp_path / "tree")
    assert run("./tree", cwd=tmp_path).returncode == 0
    assert run("tree", cwd=tmp_path).returncode == 2


@pytest.mark.parametrize(
    ("severity", "code"), [("error", 0), ("warning", 1), ("note", 1), ("WARNING", 1)]
)  # fmt: skip
def test_what_fails_is_for_the_user_to_say(severity: str, code: int) -> None:
    assert run(str(SEED), "--fail-on", severity).returncode == code


@pytest.mark.parametrize(
    ("options", "rule"),
    [(["--gpu", "t4"], "old-card"), (["--gpu", "H200"], None), (["--tp", "3"], "refused-build")],
)
def test_what_the_server_is_given(options: list[str], rule: str | None) -> None:
    found = {f["rule"] for f in report(str(SEED), *options)["findings"] if f["engine"] == "sglang-next"}
    assert rule in found if rule else not found


def test_the_attention_backend_that_a_draft_with_sinks_needs(tmp_path: Path) -> None:
    source = materialize(FIXTURES / "published" / "nemotron-3.5-lightning-dspark", tmp_path)
    option = "--speculative-draft-attention-backend"
    said = {
        backend: {f["rule"] for f in report(str(source), *words)["findings"] if f["engine"] == "sglang-next"}
        for backend, words in {
            None: [], "trtllm_mha": [option, "trtllm_mha"], "fa3": [option, "fa3"]
        }.items()
    }  # fmt: skip
    assert "server-flag" in said[None]
    assert not {"server-flag", "refused-build"} & said["trtllm_mha"]
    assert "refused-build" in said["fa3"]


def test_verbose_adds_the_load_plan() -> None:
    plan = "layers.1.self_attn.qkv_proj "
    assert plan not in run(str(SEED)).stdout
    assert plan in run(str(SEED), "--verbose").stdout


def test_every_rule_is_listed_and_explained() -> None:
    listed = [line.split()[0] for line in run("rules").stdout.splitlines()]
    pages = Path(__file__).parents[1] / "docs" / "rules"
    assert sorted(listed) == sorted(path.stem for path in pages.glob("*-*.md"))
    told = run("explain", "dropped-tensor").stdout
    assert told == (pages / "dropped-tensor.md").read_text()
    assert "Did you mean dropped-tensor?" in run("explain", "droped-tensor").stderr


def test_no_name_at_all() -> None:
    assert run("").returncode == 3


def test_names_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    source = materialize(FIXTURES / "cases" / "dense-dflash1", tmp_path)
    tensors = json.loads((FIXTURES / "cases" / "dense-dflash1" / "tensors.json").read_text())
    tensors["layers.0.\x1b[31mred\x07\n.weight"] = ["BF16", [1]]
    write_zeros(source / "model.safetensors", tensors)
    for words in ([str(source)], ["tree", str(source)]):
        said = run(*words).stdout
        assert "\\x1b[31mred" in said
        assert all(line.isprintable() for line in said.splitlines())


def test_help_and_version() -> None:
    for word in ("--help", "-h"):
        assert "tree" in run(word).stdout
    assert run("--version").stdout.startswith("dflash-audit 0.")


def test_no_heavy_package_is_imported() -> None:
    probe = (
        "import sys; sys.argv = ['dflash-audit', sys.argv[1], '--json']\n"
        "from dflash_audit.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(*sorted({m.partition('.')[0] for m in sys.modules}), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe, str(SEED)], capture_output=True, text=True, check=True
    )
    heavy = {"torch", "numpy", "transformers", "compressed_tensors", "safetensors", "huggingface_hub"}
    assert not heavy & set(done.stderr.split())
