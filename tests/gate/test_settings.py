"""Settings of the working directory; none that a checkpoint brought along."""

import shutil
import subprocess
from pathlib import Path

import pytest
from test_cli import SEED, run

OWN = ".dflash-audit.toml"
NEVER = 'fail-on = "never"\n'


def gate(folder: Path, source: str | Path = SEED, *words: str) -> subprocess.CompletedProcess[str]:
    return run(str(source), "--engine", "sglang-0.5.23", *words, cwd=folder)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (OWN, NEVER),
        (OWN, 'ignore = ["dropped-tensor", "unfilled-parameter:*"]'),
        (OWN, 'select = ["tap-order"]'),
        ("pyproject.toml", f"[tool.dflash-audit]\n{NEVER}"),
    ],
)
def test_they_are_read_in_the_working_directory(file: str, text: str, tmp_path: Path) -> None:
    assert gate(tmp_path).returncode == 1
    (tmp_path / file).write_text(text)
    done = gate(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_own_file_is_read_alone_and_an_option_wins(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.dflash-audit]\n{NEVER}")
    (tmp_path / OWN).write_text('fail-on = "warning"\n')
    assert gate(tmp_path).returncode == 1
    assert gate(tmp_path, SEED, "--fail-on", "never").returncode == 0
    (tmp_path / OWN).write_text('ignore = ["dropped-tensor", "unfilled-parameter"]')
    assert gate(tmp_path, SEED, "--ignore", "dropped-tensor").returncode == 1


def test_a_baseline_and_strict(tmp_path: Path) -> None:
    gate(tmp_path, SEED, "--write-baseline", "known.json")
    (tmp_path / OWN).write_text('baseline = "known.json"\nstrict = true\n')
    assert gate(tmp_path).returncode == 0
    (tmp_path / "known.json").unlink()
    assert gate(tmp_path).returncode == 2


def test_a_pyproject_of_others_says_nothing(tmp_path: Path) -> None:
    for text in ("[project]\nname = 'dflash-audit'\n", "broken = ", "[tool.ruff]\n"):
        (tmp_path / "pyproject.toml").write_text(text)
        assert gate(tmp_path).returncode == 1


@pytest.mark.parametrize("name", ["dflash_audit", "DFlash-Audit"])
def test_a_table_under_another_spelling_is_told_and_not_passed_over(name: str, tmp_path: Path) -> None:
    table = f"[tool.{name}]\n{NEVER}"
    for text in (table, f"[tool.dflash-audit]\n{NEVER}{table}"):
        (tmp_path / "pyproject.toml").write_text(text)
        done = gate(tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"tool.{name} is not read: the table is [tool.dflash-audit]" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("fail_on = 'never'", "fail_on is no key. Did you mean fail-on?"),
        ("fail-on = 'nevr'", "Did you mean never?"),
        ("fail-on = 1", "fail-on is not a string"),
        ("ignore = ['drop-tensor']", "Did you mean dropped-tensor?"),
        ("ignore = 'dropped-tensor'", "ignore is not a list"),
        ("select = []", "select is not a list of strings, not empty"),
        ("select = [1]", "select is not a list of strings"),
        ("strict = 'yes'", "strict is not true or false"),
        ("strict = ", "is no TOML"),
        ('"\\u001b[31m" = 1', "\\x1b[31m is no key"),
    ],
)
def test_what_is_wrong_is_a_usage_error(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / OWN).write_text(text)
    done = gate(tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{OWN}: " in done.stderr
    assert says in done.stderr


@pytest.fixture
def draft(tmp_path: Path) -> Path:
    """A draft that came with settings of its own."""
    folder = tmp_path / "draft"
    shutil.copytree(SEED, folder)
    (folder / OWN).write_text(NEVER)
    (folder / "pyproject.toml").write_text(f"[tool.dflash-audit]\n{NEVER}")
    return folder


def test_those_of_what_is_audited_are_never_read(draft: Path) -> None:
    done = gate(draft.parent, "draft")
    assert (done.returncode, done.stderr) == (1, "")
    assert gate(draft.parent, "draft/model.safetensors").returncode == 1


@pytest.mark.parametrize("source", [".", "model.safetensors", "../draft", "../link"])
def test_not_from_within_either_and_that_is_said(source: str, draft: Path) -> None:
    (draft.parent / "link").symlink_to(draft)
    done = gate(draft, source)
    assert done.returncode == 1
    assert done.stderr == f"dflash-audit: {OWN} is not read: the working directory is what is audited\n"
    (draft / OWN).unlink()
    assert "pyproject.toml is not read" in gate(draft, source).stderr
    (draft / "pyproject.toml").write_text("[project]\nname = 'dflash-audit'\n")
    assert gate(draft, source).stderr == ""


def test_nor_from_a_folder_in_it(draft: Path) -> None:
    (draft / "sub").mkdir()
    (draft / OWN).rename(draft / "sub" / OWN)
    assert gate(draft / "sub", "..").returncode == 1


@pytest.mark.parametrize("sign", ["config.json", "a.safetensors", ".cache/huggingface/x"])
def test_nor_where_a_checkpoint_or_a_download_is(sign: str, tmp_path: Path) -> None:
    (tmp_path / OWN).write_text(NEVER)
    assert gate(tmp_path).returncode == 0
    (tmp_path / sign).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / sign).write_text("{}")
    done = gate(tmp_path)
    assert done.returncode == 1
    assert "holds a checkpoint, which may have brought them" in done.stderr


def test_nor_in_the_cache_of_the_hub(tmp_path: Path) -> None:
    folder = tmp_path / "models--org--name" / "snapshots" / "0123"
    folder.mkdir(parents=True)
    (folder / OWN).write_text(NEVER)
    assert gate(folder).returncode == 1
