"""The hook: as its entry is called, and as the real pre-commit runs it from a clone."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ci.manifests import ROOT
from materialize import materialize
from test_cli import FIXTURES, SEED

from dflash_audit.pre_commit import checkpoints, main

ENTRY = (sys.executable, "-c", "from dflash_audit.pre_commit import main; main()")
IDENTITY = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")


def git(where: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *IDENTITY, *words],
        cwd=where,
        check=True,
        capture_output=True,
        text=True,
        env=environment(where),
    )
    return done.stdout


def environment(where: Path) -> dict[str, str]:
    """Without settings of the machine's own, and outside the hook that may be running these tests."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {**inherited, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "NO_COLOR": "1"}


def broken(into: Path) -> Path:
    """A draft that no engine loads: its quantization config is lost."""
    shutil.copytree(SEED, into)
    config = into / "config.json"
    config.write_text(config.read_text().replace('"quantization_config"', '"lost"'))
    return into


@pytest.fixture
def drafts(tmp_path: Path) -> Path:
    """Two drafts, one of which is broken, and a config.json of something else."""
    shutil.copytree(SEED, tmp_path / "drafts" / "good")
    broken(tmp_path / "drafts" / "bad")
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "config.json").write_text("{}")
    return tmp_path


def hook(where: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*ENTRY, *words], cwd=where, capture_output=True, text=True, check=False, env=environment(where)
    )


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["drafts/good/config.json"], 0),
        (["drafts/bad/config.json"], 1),
        (["drafts/bad/model.safetensors", "drafts/good/model.safetensors"], 1),
        (["--engine=all", "drafts/good/model.safetensors"], 1),
        (["--fail-on=never", "drafts/bad/config.json"], 0),
        (["app/config.json", "drafts/bad/notes.md"], 0),
        ([], 0),
        (["--engine=sglang-nxt", "drafts/good/config.json"], 2),
        (["--engine", "all", "drafts/good/config.json"], 2),
    ],
)
def test_the_entry(words: list[str], code: int, drafts: Path) -> None:
    (drafts / "drafts" / "bad" / "notes.md").write_text("")
    done = hook(drafts, *words)
    assert done.returncode == code, done.stdout + done.stderr


def test_a_checkpoint_is_audited_once_and_one_that_fails_stops_no_other(drafts: Path) -> None:
    names = ("config.json", "model.safetensors")
    done = hook(drafts, *(f"drafts/{draft}/{name}" for name in names for draft in ("bad", "good")))
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.startswith(("drafts/", "exit code"))] == [
        "drafts/bad", "exit code 1", "drafts/good", "exit code 0",
    ]  # fmt: skip


def test_a_folder_that_cannot_be_listed_is_a_line(
    drafts: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def listdir(path: str) -> list[str]:
        raise PermissionError(13, "Permission denied", f"{path}\n::error::")

    monkeypatch.chdir(drafts)
    monkeypatch.setattr("os.listdir", listdir)
    monkeypatch.setattr(sys, "argv", ["hook", "drafts/good/config.json"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert (ended.value.code, *capsys.readouterr()) == (
        3, "", "dflash-audit: drafts/good\\n::error::: Permission denied\n"
    )  # fmt: skip


def test_weights_that_are_no_longer_whole_stop_the_commit(drafts: Path) -> None:
    (drafts / "drafts" / "good" / "config.json").unlink()
    assert hook(drafts, "drafts/good/model.safetensors").returncode == 3
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    (drafts / "drafts" / "bad" / "model.safetensors").write_text(pointer)
    done = hook(drafts, "drafts/bad/model.safetensors")
    assert (done.returncode, "LFS" in done.stderr) == (3, True)


def test_a_file_cannot_pass_for_an_option(drafts: Path) -> None:
    evil = drafts / "--fail-on=never"
    shutil.copytree(drafts / "drafts" / "bad", evil)
    done = hook(drafts, "--fail-on=never/config.json", "drafts/bad/config.json")
    assert (done.returncode, done.stdout) == (2, "")
    assert "called like an option" in done.stderr
    strange = drafts / "a\n::error::b"
    shutil.copytree(drafts / "drafts" / "bad", strange)
    done = hook(drafts, f"{strange.name}/config.json", f"{strange.name}/x.safetensors")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert hook(drafts, f"{strange.name}/config.json").returncode == 1


def test_nothing_of_the_repository_is_imported(drafts: Path) -> None:
    for name in ("dflash_audit", "typer", "rich"):
        (drafts / f"{name}.py").write_text("open('imported', 'w')")
    installed = subprocess.run(
        [sys.executable, "-P", *ENTRY[1:], "drafts/good/config.json"],
        cwd=drafts, capture_output=True, check=False, env={**environment(drafts), "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert (installed.returncode, (drafts / "imported").exists()) == (0, False)


def test_which_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(SEED, tmp_path, dirs_exist_ok=True)
    materialize(FIXTURES / "cases" / "dense-dflash1", tmp_path / "b")
    (tmp_path / "c").mkdir()
    assert checkpoints(["config.json"]) == ["."]
    assert checkpoints(["c/config.json", "b/model.safetensors", "b/config.json"]) == ["b"]
    assert checkpoints(["c/model.safetensors.index.json"]) == ["c"]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This checkout as pre-commit clones one: what is in it now, committed."""
    copy = tmp_path_factory.mktemp("hook") / "dflash-audit"
    copy.mkdir()
    for name in (".pre-commit-hooks.yaml", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    shutil.copytree(
        ROOT / "dflash_audit", copy / "dflash_audit", ignore=shutil.ignore_patterns("__pycache__")
    )
    git(copy, "init", "--quiet")
    git(copy, "add", ".")
    git(copy, "commit", "--quiet", "-m", "all")
    return copy


def test_the_real_pre_commit(repository: Path, drafts: Path) -> None:
    revision = git(repository, "rev-parse", "HEAD").strip()
    (drafts / ".pre-commit-config.yaml").write_text(
        f"repos:\n  - repo: {repository.as_uri()}\n    rev: {revision}\n    hooks:\n"
        "      - id: dflash-audit\n        files: ^drafts/\n        args: [--gpu=b200]\n"
    )
    git(drafts, "init", "--quiet")

    def commit(*paths: str) -> subprocess.CompletedProcess[str]:
        git(drafts, "add", *paths)
        return subprocess.run(
            [sys.executable, "-m", "pre_commit", "run", *(["--all-files"] if not paths else [])],
            cwd=drafts, capture_output=True, text=True, check=False,
            env={**environment(drafts), "PRE_COMMIT_HOME": str(repository.parent / "home"), "PYTHONPATH": ""},
        )  # fmt: skip

    good = commit(".pre-commit-config.yaml", "app", "drafts/good")
    assert good.returncode == 0, good.stdout + good.stderr
    assert "Passed" in good.stdout
    git(drafts, "commit", "--quiet", "-m", "good")
    bad = commit("drafts/bad")
    assert (bad.returncode, "does not serve" in bad.stdout) == (1, True), bad.stdout
    assert "drafts/good" not in bad.stdout
    everything = commit()
    assert (everything.returncode, "drafts/good" in everything.stdout) == (1, True)
    git(drafts, "rm", "--quiet", "--cached", "-r", "drafts/bad")
    nothing = commit(".pre-commit-config.yaml")
    assert "Skipped" in nothing.stdout
