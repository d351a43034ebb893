"""`dflash-audit fix` as a process: words in, a diff out, and what is on the disk after it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fixing.fix_schema import valid, validator
from materialize import materialize
from test_cli import name_class

from dflash_audit.engines import ENGINES

FIXTURES = Path(__file__).parents[2] / "fixtures"
ADDED = '+ "use_sliding_window": true,\n'


def run(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dflash_audit", "fix", *words]
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, check=False)


def document(*words: str) -> dict[str, Any]:
    done = run(*words, "--json")
    said: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == said["exit_code"]
    return valid(said)


@pytest.fixture
def draft(tmp_path: Path) -> Path:
    """A draft with sliding layers and without `use_sliding_window`."""
    return materialize(FIXTURES / "cases" / "sliding-disabled", tmp_path / "draft")


def test_a_diff_is_shown_and_nothing_written(draft: Path) -> None:
    before = (draft / "config.json").read_bytes()
    done = run(str(draft))
    assert (done.returncode, done.stderr) == (0, "")
    assert "--- a/config.json\n+++ b/config.json\n@@" in done.stdout
    assert "use_sliding_window: layer_types has sliding layers" in " ".join(done.stdout.split())
    assert "Write it with --write." in done.stdout
    assert (draft / "config.json").read_bytes() == before
    assert sorted(path.name for path in draft.iterdir()) == ["config.json", "model.safetensors"]


def test_the_diff_is_one_that_patch_takes(draft: Path) -> None:
    wanted = document(str(draft))
    done = subprocess.run(["git", "apply", "-"], input=wanted["diff"], text=True, cwd=draft, check=False)
    assert done.returncode == 0
    assert (
        run(str(draft)).stdout.splitlines()[-2]
        == "Nothing to mend: no deciding engine fails this checkpoint."
    )


def test_write_keeps_the_original(draft: Path) -> None:
    before = (draft / "config.json").read_bytes()
    done = run(str(draft), "--write")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Written. The original is" in done.stdout
    assert (draft / "config.json.orig").read_bytes() == before
    assert json.loads((draft / "config.json").read_text())["use_sliding_window"] is True
    again = run(str(draft), "--write")
    assert again.returncode == 0 and "Nothing to mend" in again.stdout
    assert not (draft / "config.json.orig.1").exists()


def test_a_single_file_beside_its_config(draft: Path) -> None:
    assert run(str(draft / "model.safetensors"), "--write").returncode == 0
    assert (draft / "config.json.orig").exists()


def test_json(draft: Path) -> None:
    said = document(str(draft))
    assert said["outcome"] == "mended"
    (edit,) = said["edits"]
    assert (edit["path"], edit["new"], edit["doubt"]) == (["use_sliding_window"], True, None)
    assert edit.get("old", False) is False
    assert said["before"] == dict.fromkeys(ENGINES, "fail")
    assert said["after"] == dict.fromkeys(ENGINES, "pass")
    assert (said["written"], said["error"], said["recipe"]) == (None, None, None)
    said = document(str(draft), "--write")
    assert said["written"] == {"backup": str(draft / "config.json.orig")}


def test_a_change_that_costs_another_engine_is_written_where_that_is_accepted(tmp_path: Path) -> None:
    """It serves the default engine, and the release would load what it refuses now."""
    source = materialize(FIXTURES / "cases" / "ct-format-dense", tmp_path / "draft")
    before = (source / "config.json").read_bytes()
    shown = run(str(source))
    told = " ".join(shown.stdout.split())
    assert shown.returncode == 1
    assert '"format": "pack-quantized"' in shown.stdout
    assert "What it costs: sglang-0.5.23 then drops fc.{weight_packed,weight_scale,weight_shape}" in told
    assert "--accept-loss" in told
    refused = run(str(source), "--write")
    assert (refused.returncode, (source / "config.json").read_bytes()) == (1, before)
    assert "Not written:" in refused.stdout
    said = document(str(source), "--write", "--accept-loss")
    assert (said["outcome"], said["exit_code"]) == ("harmful", 0)
    assert said["written"] == {"backup": str(source / "config.json.orig")}
    assert document(str(source))["outcome"] == "nothing-to-mend"


def test_what_nobody_judged_is_not_said_to_be_whole(draft: Path) -> None:
    name_class(draft, "Lfm2DSparkDraftModel")
    assert "Nothing is known to mend: no deciding engine judged this checkpoint." in run(str(draft)).stdout


def test_the_schema_takes_no_key_that_it_does_not_know(draft: Path) -> None:
    said = document(str(draft))
    for broken in (
        {**said, "more": 1},
        {key: value for key, value in said.items() if key != "harms"},
        {**said, "edits": [{**said["edits"][0], "doubts": None}]},
        {**said, "edits": [{"path": ["x"], "why": "", "doubt": None}]},
        {**said, "outcome": "fixed"},
        {**said, "before": {"sglang-next": "passes"}},
    ):
        assert not validator().is_valid(broken)


def test_the_verdicts_fit_a_narrow_screen(tmp_path: Path) -> None:
    """One line an engine, those that decide first."""
    source = materialize(FIXTURES / "cases" / "ct-dflash2-w8a16_seed", tmp_path / "draft")
    path = source / "config.json"
    path.write_text(path.read_text().replace('"compressed-tensors"', '"compressed_tensors"'))
    environment = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "dflash_audit", "fix", str(source)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    rows = [line.split("  ") for line in done.stdout.splitlines() if line.startswith("  sglang-")][:2]
    assert [row[1] for row in rows] == ["sglang-next", "sglang-0.5.19"]
    assert rows[1][-1].strip() == "(does not count)"


def test_what_no_change_helps_exits_1_and_is_not_written(tmp_path: Path) -> None:
    source = materialize(FIXTURES / "cases" / "ct-dflash2-w8a16_seed", tmp_path / "draft")
    done = run(str(source), "--engine", "sglang-0.5.23", "--write")
    assert done.returncode == 1
    assert "QuantizationModifier:" in done.stdout
    assert "fc.{weight_packed,weight_scale,weight_shape}" in done.stdout
    assert not (source / "config.json.orig").exists()


@pytest.mark.parametrize(
    "words", [["org/name", "--write"], ["hf://org/name", "--write"], ["x", "--engine", "sglang-9"], []]
)
def test_a_wrong_command_line_exits_2(words: list[str], tmp_path: Path) -> None:
    done = run(*words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")


def test_what_cannot_be_read_exits_3(tmp_path: Path) -> None:
    done = run(str(tmp_path / "nowhere"))
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.count("\n") == 1
    assert document(str(tmp_path / "nowhere"))["error"]["kind"] == "no-such-source"


def test_a_file_of_the_hubs_cache_exits_3(tmp_path: Path) -> None:
    source = materialize(
        FIXTURES / "cases" / "sliding-disabled", tmp_path / "models--org--draft" / "snapshots" / "0123"
    )
    done = run(str(source), "--write")
    assert done.returncode == 3
    assert "Hub's cache" in done.stderr and done.stderr.count("\n") == 1
    assert ADDED.strip() in done.stdout or "use_sliding_window" in done.stdout
    assert not (source / "config.json.orig").exists()
    assert "Not written: " in " ".join(done.stdout.split())


def test_hostile_names_reach_no_terminal(tmp_path: Path) -> None:
    source = materialize(FIXTURES / "cases" / "ct-targets-one-layer", tmp_path / "draft")
    path = source / "config.json"
    config = json.loads(path.read_text())
    groups = config["quantization_config"]["config_groups"]
    evil = "\x1b[2J\u202e\n::error::<script>|[bold]"
    config["quantization_config"]["config_groups"] = {evil: next(iter(groups.values()))}
    path.write_text(json.dumps(config, indent=1, ensure_ascii=False))
    done = run(str(source))
    assert done.returncode in (0, 1)
    assert "\x1b" not in done.stdout and "\u202e" not in done.stdout
    assert not any(line.startswith("::error::") for line in done.stdout.splitlines())
    assert "\\x1b[2J" in done.stdout or "\\u001b[2J" in done.stdout


@pytest.mark.parametrize("depth", [90, 900])
def test_a_config_that_is_nested_deep(draft: Path, depth: int) -> None:
    path = draft / "config.json"
    deep = '"deep": ' + '{"a":' * depth + "1" + "}" * depth
    path.write_text(path.read_text().replace("{", "{" + deep + ",", 1))
    done = run(str(draft))
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 1, 3)
    assert (done.returncode == 0) == (depth == 90)


def test_very_many_values_are_not_all_tried(draft: Path) -> None:
    path = draft / "config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps({**{f"k{i}": str(i) for i in range(2000)}, **config, "block_size": 0}))
    done = run(str(draft))
    assert done.returncode in (0, 1)
