"""What a SOURCE is: a path or a repo, and which file or folder of it."""

from pathlib import Path

import pytest

from dflash_audit.auditing import Request, audit
from dflash_audit.sources.checkpoint import Origin
from dflash_audit.sources.repo import Repo, parse_repo
from dflash_audit.sources.source import find_repo, origin


@pytest.mark.parametrize(
    ("text", "repo"),
    [
        ("org/name", Repo("org/name")),
        ("hf://org/name", Repo("org/name")),
        ("org/name@main", Repo("org/name", "main")),
        ("org/name@refs/pr/1", Repo("org/name", "refs/pr/1")),
        ("hf://org/name@v1.0", Repo("org/name", "v1.0")),
        ("org/name:dflash/", Repo("org/name", None, "dflash")),
        ("org/name:a/b", Repo("org/name", None, "a/b")),
        ("org/name@v1:dflash/", Repo("org/name", "v1", "dflash")),
        ("hf://org/name@refs/pr/1:a/b/", Repo("org/name", "refs/pr/1", "a/b")),
        ("Org_1/Qwen3.8-27B-DFlash2", Repo("Org_1/Qwen3.8-27B-DFlash2")),
        ("name", None),
        ("hf://name", None),
        ("hf://datasets/org/name", None),
        ("a/b/c", None),
        ("org/", None),
        ("/name", None),
        ("org/name/", None),
        ("./name", None),
        ("../name", None),
        ("org/..", None),
        ("~/name", None),
        ("-org/name", None),
        ("org/name@", None),
        ("org/name@a@b", None),
        ("org/name@a b", None),
        ("org/name:", None),
        ("org/name:/", None),
        ("org/name:../other", None),
        ("org/name:a//b", None),
        ("org/name:./a", None),
        ("C:/org/name", None),
        ("örg/name", None),
        ("org/name\n", None),
        ("", None),
    ],
)
def test_names_of_repos(text: str, repo: Repo | None) -> None:
    assert parse_repo(text) == repo


def test_a_path_that_exists_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_repo("org/name") == Repo("org/name")
    (tmp_path / "org" / "name").mkdir(parents=True)
    (tmp_path / "org" / "name@v1").mkdir()
    assert find_repo("org/name") is None
    assert find_repo("org/name@v1") is None
    assert find_repo("org/name@v2") == Repo("org/name", "v2")
    assert find_repo("hf://org/name") == Repo("org/name")


@pytest.mark.parametrize("source", ["name", "./org/name", "a/b/c", "org/model.safetensors", "/org/name"])
def test_a_missing_path(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert not find_repo(source)
    report = audit(Request(source))
    assert report.error is not None
    assert report.error.kind == "no-such-source"
    hint = " (a repo of the Hub is org/name)" if source == "name" else ""
    assert report.error.message == f"{source}: no such folder or file{hint}"
    assert report.origin == Origin("local", source)


@pytest.mark.parametrize(
    ("source", "revision", "kind", "message"),
    [
        ("hf://name", None, "no-such-source", "hf://name: not hf://org/name, with or without"),
        ("hf://a/b/c", None, "no-such-source", "hf://a/b/c: not hf://org/name, with or without"),
        ("org/name@v1", "v2", "no-such-revision", "org/name@v1: another revision than --revision v2"),
        (".", "v1", "no-such-revision", ".: a path, and --revision is for a repo of the Hub"),
    ],
)
def test_what_cannot_be_meant(source: str, revision: str | None, kind: str, message: str) -> None:
    error = audit(Request(source, revision=revision)).error
    assert error is not None
    assert error.kind == kind
    assert error.message.startswith(message)


def test_the_origin_before_anything_is_read() -> None:
    assert origin("org/name@v1:dflash/", None) == Origin("hub", "org/name:dflash", "v1")
    assert origin("org/name", "v1") == Origin("hub", "org/name", "v1")
    assert origin("./org/name", None) == Origin("local", "./org/name")
