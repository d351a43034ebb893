"""What a warm-up downloads of a repo: exactly what it needs, whole or not at all."""

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hub.drafts import INDEX, sharded, single
from hub.fake_hub import Failure, FakeHub, Repo
from warmup.jobs import CHILD

from dflash_audit.errors import Unreadable
from dflash_audit.sources.hub_download import download
from dflash_audit.sources.local_copy import local_copy
from dflash_audit.sources.progress import SHOWN
from dflash_audit.sources.source import read_source

NAME = "org/draft"


def downloaded(source: str = NAME) -> Path:
    return download(read_source(source, None))


def kind(setting: Callable[[], object]) -> tuple[str, str]:
    """What keeps the repo from being downloaded, once it is read and `setting` was done."""
    checkpoint = read_source(NAME, None)
    setting()
    with pytest.raises(Unreadable) as caught:
        download(checkpoint)
    assert caught.value.message.isprintable()
    return caught.value.kind, caught.value.message


def cached(hub_cache: Path) -> list[Path]:
    """Files with content in the cache, locks left out."""
    return [path for path in hub_cache.rglob("*") if path.is_file() and ".locks" not in path.parts]


def test_exactly_what_is_needed(hub: FakeHub, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {**sharded(3, tmp_path), "old.safetensors": b"unread", "tokenizer.json": b"{}" * 1000}
    files["hf_quant_config.json"] = b'{"quantization": {"quant_algo": null}}'
    commit = hub.repo(NAME, files).refs["main"]
    checkpoint = read_source(NAME, None)
    checkpoint.json_files.get("hf_quant_config.json")
    token = SHOWN.set(True)
    folder = download(checkpoint)
    SHOWN.reset(token)
    assert folder.name == commit
    assert {path.name for path in folder.iterdir()} == {
        "config.json", "hf_quant_config.json", INDEX, *(file.name for file in checkpoint.files)
    }  # fmt: skip
    assert all((folder / name).read_bytes() == files[name] for name in os.listdir(folder))
    size = sum(len(files[file.name]) for file in checkpoint.files)
    first, *others = capsys.readouterr().err.splitlines()
    told = f"dflash-audit: downloading 3 weight files of {NAME} at {commit[:12]}, {size / 1000:.1f} kB, into "
    assert first == told + str(tmp_path / "cache")
    assert others == []  # no terminal, no bars


def test_what_is_there_is_not_asked_for_again(
    hub: FakeHub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.repo(NAME, sharded(2, tmp_path))
    checkpoint = read_source(NAME, None)
    first = download(checkpoint)
    hub.log.clear()
    capsys.readouterr()
    assert download(checkpoint) == first
    assert hub.log == []
    assert capsys.readouterr().err == ""


def test_a_folder_of_a_repo_at_a_commit(hub: FakeHub, tmp_path: Path) -> None:
    repo = hub.repo(NAME, {f"dflash/{name}": content for name, content in single(tmp_path).items()})
    checkpoint = read_source(f"{NAME}:dflash", None)
    repo.push({"dflash/model.safetensors": b"another"})
    folder = download(checkpoint)
    assert (folder.name, folder.parent.name) == ("dflash", checkpoint.origin.commit)
    assert (folder / "model.safetensors").read_bytes() == single(tmp_path)["model.safetensors"]


def test_an_answer_cut_short_goes_on_where_it_ended(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 10_000)
    content = single(tmp_path)["model.safetensors"]
    hub.repo(NAME, single(tmp_path))
    checkpoint = read_source(NAME, None)
    hub.log.clear()
    hub.cut_to, hub.cuts = 200_000, 1
    assert (download(checkpoint) / "model.safetensors").read_bytes() == content
    assert "bytes=200000-" in [request.range for request in hub.log]


def test_an_interrupted_download_keeps_what_is_whole(hub: FakeHub, tmp_path: Path) -> None:
    hub.repo(NAME, sharded(3, tmp_path))
    checkpoint = read_source(NAME, None)
    names = [file.name for file in checkpoint.files]
    hub.failures = [Failure(501, where=names[2], times=99)]
    with pytest.raises(Unreadable):
        download(checkpoint)
    hub.failures.clear()
    hub.log.clear()
    folder = download(checkpoint)
    assert {path.rpartition("/")[2] for path in hub.paths()} == {names[2]}
    assert all((folder / name).stat().st_size for name in names)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client does not wait between its attempts."""
    monkeypatch.setattr("time.sleep", lambda seconds: None)


def test_failures(hub: FakeHub, tmp_path: Path, hasty: None) -> None:
    repo = hub.repo(NAME, single(tmp_path))
    weights = f"{NAME}/model.safetensors"

    def gate() -> None:
        repo.gated = True

    def close() -> None:
        repo.gated, repo.private = False, True

    def fail() -> None:
        repo.private = False
        hub.failures = [Failure(503, where="model.safetensors", times=99)]

    said, message = kind(gate)
    assert (said, message.startswith(f"{NAME}/config.json: gated: accept its terms")) == ("gated-repo", True)
    repo.gated = False
    assert kind(close)[0] == "no-such-repo"
    repo.private = False
    assert kind(fail) == ("network", f"{weights}: {hub.url} answers 503")
    assert not [path for path in cached(tmp_path / "cache") if path.stat().st_size > 10_000]


def test_a_hub_that_is_gone(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hasty: None
) -> None:
    hub.repo(NAME, single(tmp_path))

    def leave() -> None:
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
        url = "http://127.0.0.1:9/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", url)

    said, message = kind(leave)
    assert said == "network"
    assert "http://127.0.0.1:9 cannot be read (ConnectError" in message


def test_offline(hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.repo(NAME, single(tmp_path))

    def offline() -> None:
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)

    assert kind(offline)[0] == "not-cached"
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    folder = downloaded()
    offline()
    hub.log.clear()
    # A commit is no branch: the cache knows it by its own name.
    assert local_copy(read_source(f"{NAME}@{folder.name}", None)) == folder
    assert hub.log == []


@pytest.mark.parametrize(
    ("error", "kind_of", "told"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "disk-full", "(No space left on device)"),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), "disk-full", "(Disk quota exceeded)"),
        (OSError(errno.EROFS, "Read-only file system"), "unwritable", "(Read-only file system)"),
        (RuntimeError("I/O error: No space left on device (os error 28)"), "disk-full", "(os error 28))"),
        (RuntimeError("CAS service error"), "network", "cannot be read (CAS service error)"),
    ],
)
def test_a_disk_that_takes_no_more(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, kind_of: str, told: str
) -> None:
    hub.repo(NAME, single(tmp_path))

    def refuse(*words: object, **options: object) -> str:
        raise error

    def fill_up() -> None:
        monkeypatch.setattr("dflash_audit.sources.hub_download.hf_hub_download", refuse)

    said, message = kind(fill_up)
    assert (said, told in message) == (kind_of, True)
    assert "\n" not in message


def test_a_file_that_was_tampered_with(hub: FakeHub, tmp_path: Path) -> None:
    hub.repo(NAME, single(tmp_path))
    checkpoint = read_source(NAME, None)
    weights = download(checkpoint) / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(Unreadable) as caught:
        download(checkpoint)
    assert caught.value.kind == "bad-answer"
    assert str(weights) in caught.value.message


def test_a_path_is_where_it_is(tmp_path: Path) -> None:
    for name, content in single(tmp_path).items():
        (tmp_path / name).write_bytes(content)
    for source in (tmp_path, tmp_path / "model.safetensors"):
        assert local_copy(read_source(str(source), None)) == tmp_path


PROGRAM = """
import resource, sys
from functools import partial
from dflash_audit.engines.sglang.replay import SGLang
from dflash_audit.warmup import each_engine, extra, isolation
extra.PACKAGES = ()
largest, child = int(sys.argv.pop(1)), sys.argv.pop(1)
if largest:
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
SGLang.forward = lambda self, run: "pass_"
each_engine.warm_up = partial(isolation.warm_up, module=child)
from dflash_audit.cli import main
main()
"""


def program(hub: FakeHub, home: Path, largest: int = 0) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(largest), CHILD, NAME, "--warmup", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={
            "HF_ENDPOINT": hub.url,
            "HF_HOME": str(home),
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "no_proxy": "*",
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        },
    )


def test_the_program_downloads_and_runs(hub: FakeHub, tmp_path: Path) -> None:
    repo: Repo = hub.repo(NAME, single(tmp_path))
    with program(hub, tmp_path / "home") as done:
        said, told = done.communicate(timeout=60)
    report = json.loads(said)
    assert (done.returncode, report["warmup"][0]["verdict"]) == (0, "pass")
    assert report["source"]["commit"] == repo.refs["main"]
    assert len(told.splitlines()) == 1


def test_the_program_on_a_full_disk(hub: FakeHub, tmp_path: Path) -> None:
    """A limit on the size of files stands in for the disk: writes fail half-way, as on a full one."""
    hub.repo(NAME, single(tmp_path))
    with program(hub, tmp_path / "home", largest=300_000) as done:
        said, told = done.communicate(timeout=60)
    report = json.loads(said)
    assert done.returncode == report["summary"]["exit_code"] == 3
    assert (report["error"]["kind"], report["warmup"]) == ("disk-full", [])
    assert len(report["engines"]) > 1
    assert told.splitlines()[-1] == f"dflash-audit: {report['error']['message']}"
    assert max(path.stat().st_size for path in cached(tmp_path / "home")) < 100_000


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_the_program_killed_half_way(hub: FakeHub, tmp_path: Path, number: signal.Signals) -> None:
    content = single(tmp_path)["model.safetensors"]
    hub.repo(NAME, single(tmp_path))
    running = program(hub, tmp_path / "home")
    # The first request for the weights reads their header; a later one, at the latest, comes of the download.
    asked: list[str] = []

    def kill(path: str) -> None:
        asked.append(path)
        if sum(each.endswith("model.safetensors") for each in asked) == 3:
            running.send_signal(number)
            running.wait(30)

    hub.before_file = kill
    with running:
        running.communicate(timeout=60)
    assert running.returncode != 0
    snapshots = list((tmp_path / "home").rglob("snapshots/*/model.safetensors"))
    assert snapshots == []
    hub.before_file = len
    with program(hub, tmp_path / "home") as again:
        again.communicate(timeout=60)
    assert again.returncode == 0
    (weights,) = (tmp_path / "home").rglob("snapshots/*/model.safetensors")
    assert weights.read_bytes() == content
