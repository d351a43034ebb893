"""config.json on the disk: whole or not at all, with the original beside it."""

import os
import stat
from pathlib import Path

import pytest

from dflash_audit.errors import Unreadable
from dflash_audit.fixing.writing import write_config

OLD, NEW = b'{"a": 1}\n', b'{"a": 2}\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "draft"
    path.mkdir()
    (path / "config.json").write_bytes(OLD)
    return path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_original_stays_beside_it(folder: Path) -> None:
    (folder / "config.json").chmod(0o640)
    backup = write_config(folder, OLD, NEW)
    assert backup == folder / "config.json.orig"
    assert names(folder) == ["config.json", "config.json.orig"]
    assert ((folder / "config.json").read_bytes(), backup.read_bytes()) == (NEW, OLD)
    assert stat.S_IMODE((folder / "config.json").stat().st_mode) == 0o640


def test_no_backup_is_written_over(folder: Path) -> None:
    (folder / "config.json.orig").write_text("mine")
    (folder / "config.json.orig.1").symlink_to("nowhere")
    assert write_config(folder, OLD, NEW) == folder / "config.json.orig.2"
    assert (folder / "config.json.orig").read_text() == "mine"
    assert not (folder / "nowhere").exists()


def test_a_config_that_changed_in_the_meantime_is_left(folder: Path) -> None:
    (folder / "config.json").write_text('{"a": 3}')
    with pytest.raises(Unreadable, match="meantime") as raised:
        write_config(folder, OLD, NEW)
    assert raised.value.kind == "changed"
    assert names(folder) == ["config.json"]
    assert (folder / "config.json").read_text() == '{"a": 3}'


def test_a_link_becomes_a_file_and_what_it_points_to_stays(folder: Path, tmp_path: Path) -> None:
    shared = tmp_path / "shared.json"
    (folder / "config.json").rename(shared)
    (folder / "config.json").symlink_to(shared)
    write_config(folder, OLD, NEW)
    assert shared.read_bytes() == OLD
    assert not (folder / "config.json").is_symlink()
    assert (folder / "config.json").read_bytes() == NEW
    assert (folder / "config.json.orig").read_bytes() == OLD


@pytest.mark.parametrize("blobs", ["hub/models--org--draft/blobs", "hub/blobs"])
@pytest.mark.parametrize("linked", [True, False])
def test_the_cache_of_the_hub_is_not_written(tmp_path: Path, blobs: str, linked: bool) -> None:
    snapshot = tmp_path / "hub" / "models--org--draft" / "snapshots" / "0123"
    snapshot.mkdir(parents=True)
    blob = tmp_path / blobs / "abcd"
    blob.parent.mkdir(parents=True, exist_ok=True)
    blob.write_bytes(OLD)
    folder = tmp_path / "links" if linked else snapshot
    folder.mkdir(exist_ok=True)
    (folder / "config.json").symlink_to(blob)
    with pytest.raises(Unreadable, match="Hub's cache") as raised:
        write_config(folder, OLD, NEW)
    assert raised.value.kind == "in-cache"
    assert blob.read_bytes() == OLD
    assert names(folder) == ["config.json"]


@pytest.mark.parametrize("step", ["mkstemp", "replace"])
def test_a_disk_that_takes_nothing_is_one_clear_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr({"mkstemp": "tempfile.mkstemp", "replace": "os.replace"}[step], full)
    with pytest.raises(Unreadable) as raised:
        write_config(folder, OLD, NEW)
    assert raised.value.message == f"{folder}{os.sep}config.json: Read-only file system"
    assert names(folder) == ["config.json"]
    assert (folder / "config.json").read_bytes() == OLD
