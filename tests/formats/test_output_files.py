"""Where reports go: stdout, files, several at once; what a disk that takes none of it comes to."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from report_schema import valid
from test_cli import SEED, run

from dflash_audit.atomic_write import write_atomically
from dflash_audit.formats import FORMATS


def read(path: Path) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(path.read_text())
    return valid(said)


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_holds_what_stdout_would(name: str, tmp_path: Path) -> None:
    file = tmp_path / "report"
    done = run(str(SEED), "--format", name, "-o", str(file))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert file.read_text() == run(str(SEED), "--format", name).stdout
    assert os.listdir(tmp_path) == ["report"]


def test_several_in_one_run_and_text_on_stdout(tmp_path: Path) -> None:
    words = ["--format", f"json={tmp_path}/a=b.json", "--format", f"SARIF={tmp_path}/b.sarif"]
    done = run(str(SEED), *words)
    assert done.stdout == run(str(SEED)).stdout
    assert read(tmp_path / "a=b.json")["summary"]["exit_code"] == done.returncode == 0
    assert json.loads((tmp_path / "b.sarif").read_text())["version"] == "2.1.0"
    beside = run(str(SEED), *words, "--json")
    assert valid(json.loads(beside.stdout)) == read(tmp_path / "a=b.json")
    into = run(str(SEED), *words, "-o", str(tmp_path / "c.txt"))
    assert into.stdout == ""
    assert (tmp_path / "c.txt").read_text() == done.stdout


def test_json_is_a_format() -> None:
    assert run(str(SEED), "--json").stdout == run(str(SEED), "--format", "json").stdout
    assert run(str(SEED), "--json", "--format", "JSON").returncode == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--format", "jsn"], "Did you mean json?"),
        (["--format", "json="], "names no file"),
        (["--format", "json", "--format", "sarif"], "json and sarif would both go to one place"),
        (["--json", "--format", "text"], "text and json would both go to one place"),
        (["--format", "json=a", "--format", "sarif=./a"], "a would get two reports"),
        (["--format", "json=a", "-o", "../here/a"], "../here/a would get two reports"),
        (["--format", "json=a", "--format", "json=link"], "a would get two reports"),
    ],
)
def test_usage_errors(words: list[str], says: str, tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    (here / "link").symlink_to("a")
    done = run(str(SEED), *words, cwd=here, COLUMNS="200")
    assert (done.returncode, done.stdout) == (2, "")
    assert "Usage: " in done.stderr and says in done.stderr
    assert os.listdir(here) == ["link"]


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    words = ["--format", f"sarif={tmp_path}/no/a.sarif", "--format", f"json={tmp_path}/b.json"]
    done = run(str(SEED), *words, "--json")
    assert done.returncode == 3
    told = f"{tmp_path}/no/a.sarif: cannot be written: there is no folder {tmp_path}/no"
    assert done.stderr == f"dflash-audit: {told}\n"
    said = valid(json.loads(done.stdout))
    assert said["error"] == {"kind": "unwritable-file", "message": told}
    assert said["engines"] and said["summary"]["exit_code"] == 3
    assert read(tmp_path / "b.json")["findings"] == said["findings"]


def test_a_report_whose_file_fails_is_printed(tmp_path: Path) -> None:
    done = run(str(SEED), "--json", "-o", str(tmp_path))
    assert done.returncode == 3
    assert done.stderr == f"dflash-audit: {tmp_path}: cannot be written: Is a directory\n"
    assert valid(json.loads(done.stdout))["summary"]["exit_code"] == 3
    text = run(str(SEED), "-o", str(tmp_path / "no" / "report.txt"))
    assert text.returncode == 3
    assert "sglang-next" in text.stdout


def test_a_full_disk() -> None:
    done = run(str(SEED), "--json", "-o", "/dev/full")
    assert done.returncode == 3
    assert done.stderr == "dflash-audit: /dev/full: cannot be written: No space left on device\n"
    assert valid(json.loads(done.stdout))["error"]["kind"] == "unwritable-file"
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


def test_what_could_not_be_read_is_told_in_every_file(tmp_path: Path) -> None:
    words = [word for name in FORMATS for word in ("--format", f"{name}={tmp_path}/{name}")]
    done = run(str(tmp_path / "nothing"), *words)
    assert (done.returncode, done.stdout) == (3, "")
    assert len(done.stderr.splitlines()) == 1
    for name in FORMATS:
        assert "no such folder or file" in " ".join((tmp_path / name).read_text().split()), name


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "report.json"
    file.write_text("before")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(str(file), "after")
    assert file.read_text() == "before"
    assert os.listdir(tmp_path) == ["report.json"]


def test_links_and_permissions_stay(tmp_path: Path) -> None:
    file, link = tmp_path / "report.json", tmp_path / "link"
    file.write_text("before")
    file.chmod(0o604)
    link.symlink_to(file)
    write_atomically(str(link), "after \ud800")
    assert link.is_symlink()
    assert file.read_text() == "after \\ud800"
    assert stat.S_IMODE(file.stat().st_mode) == 0o604


def test_a_new_file_is_as_open_as_any_other(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("")
    write_atomically(str(tmp_path / "report"), "text")
    assert (tmp_path / "report").stat().st_mode == (tmp_path / "other").stat().st_mode
