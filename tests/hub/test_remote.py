"""An audit of a repo: what it asks the Hub for, and that it sees what an audit of the folder sees."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from hub.drafts import INDEX, Layout, config, layout, report, sharded, single, weights, write
from hub.fake_hub import Failure, FakeHub, Repo, serve

from dflash_audit.sources.disk import read_path
from dflash_audit.sources.hub import FIRST_READ, WAITS
from dflash_audit.sources.source import read_source

NAME = "org/draft"


def resolve(commit: str, *files: str, name: str = NAME) -> set[str]:
    return {f"/{name}/resolve/{commit}/{file}" for file in files}


def many(count: int) -> Layout:
    return {f"layers.{i}.self_attn.q_proj.weight": ("BF16", [64, 64]) for i in range(count)}


def test_eight_shards_by_eleven_requests(hub: FakeHub, tmp_path: Path) -> None:
    files = sharded(8, tmp_path)
    commit = hub.repo(NAME, files).refs["main"]
    small_files, all_shards = Barrier(2), Barrier(8)

    def meet(path: str) -> None:
        """Answer none before all of a round trip have been asked for."""
        (all_shards if path.endswith(".safetensors") else small_files).wait(timeout=30)

    hub.before_file = meet
    said = report(NAME)
    shards = sorted(name for name in files if name.endswith(".safetensors"))
    first, *rest = hub.paths()
    assert first == f"/api/models/{NAME}?blobs=true"
    # Three round trips in sequence: the listing, the small files, the headers.
    assert set(rest[:2]) == resolve(commit, "config.json", INDEX)
    assert set(rest[2:]) == resolve(commit, *shards)
    assert len(rest) == 10
    assert {request.range for request in hub.log[3:]} == {f"bytes=0-{FIRST_READ - 1}"}
    small = len(files["config.json"]) + len(files[INDEX])
    assert said["source"] == {
        "kind": "hub",
        "id": NAME,
        "revision": None,
        "commit": commit,
        "files": said["source"]["files"],
        "bytes_read": sum(min(FIRST_READ, len(files[name])) for name in shards) + small,
        "bytes_total": sum(len(files[name]) for name in shards) + small,
    }


def test_the_same_report_as_of_the_folder(hub: FakeHub, tmp_path: Path) -> None:
    files = sharded(3, tmp_path)
    hub.repo(NAME, files)
    remote, local = report(NAME), report(write(files, tmp_path / "folder"))
    assert {**remote, "source": None} == {**local, "source": None}
    assert remote["source"]["files"] == local["source"]["files"]
    assert remote["summary"]["exit_code"] == 0


def test_the_same_names_as_in_the_folder(hub: FakeHub, tmp_path: Path) -> None:
    files = {**sharded(2, tmp_path), "onnx/deeper/file": b""}
    hub.repo(NAME, files)
    names = read_path(write(files, tmp_path / "folder")).names
    assert read_source(NAME, None).names == names
    assert "onnx/" in names


def test_one_file_by_three_requests(hub: FakeHub, tmp_path: Path) -> None:
    commit = hub.repo(NAME, single(tmp_path)).refs["main"]
    assert report(NAME)["error"] is None
    assert set(hub.paths()[1:]) == resolve(commit, "config.json", "model.safetensors")
    assert len(hub.log) == 3


@pytest.mark.parametrize("ignore_range", [False, True])
def test_a_long_header_takes_a_second_request(hub: FakeHub, tmp_path: Path, ignore_range: bool) -> None:
    content = weights(many(1200), tmp_path)
    header = int.from_bytes(content[:8], "little")
    assert header > FIRST_READ
    hub.repo(NAME, {"config.json": config(), "model.safetensors": content})
    hub.ignore_range = ignore_range
    source = report(NAME)["source"]
    assert [r.range for r in hub.log[2:]] == [f"bytes=0-{FIRST_READ - 1}", f"bytes={FIRST_READ}-{header + 7}"]
    assert source["files"][0]["tensors"] == 1200
    assert source["bytes_read"] == len(config()) + 8 + header


def test_a_server_that_ignores_the_range_is_not_read_to_the_end(hub: FakeHub, tmp_path: Path) -> None:
    content = weights({**layout(), "big": ("U8", [2**26])}, tmp_path)
    hub.repo(NAME, {"config.json": config(), "model.safetensors": content})
    hub.ignore_range = True
    source = report(NAME)["source"]
    assert source["bytes_read"] == len(config()) + FIRST_READ
    assert source["bytes_total"] == len(config()) + len(content)
    assert hub.sent < 2**25  # what lay in the buffers of the connection


def test_a_json_file_is_read_once_and_when_it_is_looked_up(hub: FakeHub, tmp_path: Path) -> None:
    files = {**single(tmp_path), "hf_quant_config.json": b'{"quantization": {"quant_algo": null}}'}
    commit = hub.repo(NAME, {**files, "broken.json": b"{"}).refs["main"]
    said = report(NAME)
    expected = resolve(commit, "config.json", "model.safetensors", "hf_quant_config.json")
    assert sorted(hub.paths()[1:]) == sorted(expected)
    assert said["source"]["bytes_read"] == FIRST_READ + sum(
        len(content) for name, content in files.items() if name.endswith(".json")
    )


def test_a_json_file_that_an_engine_cannot_read(hub: FakeHub, tmp_path: Path) -> None:
    hub.repo(NAME, {**single(tmp_path), "hf_quant_config.json": b"{"})
    error = report(NAME)["error"]
    assert error["kind"] == "bad-json"
    assert error["message"].startswith(f"{NAME}/hf_quant_config.json: not JSON")


@pytest.mark.parametrize(
    ("source", "option", "revision"),
    [
        (NAME, None, None),
        (f"hf://{NAME}", None, None),
        (f"{NAME}@v1", None, "v1"),
        (f"hf://{NAME}@v1", None, "v1"),
        (NAME, "v1", "v1"),
        (f"{NAME}@v1", "v1", "v1"),
        (f"{NAME}@refs/pr/1", None, "refs/pr/1"),
        (NAME, "refs/pr/1", "refs/pr/1"),
        (NAME, "a commit", "a commit"),
    ],
)
def test_revisions(
    hub: FakeHub, tmp_path: Path, source: str, option: str | None, revision: str | None
) -> None:
    repo = hub.repo(NAME, single(tmp_path))
    for ref in ("v1", "refs/pr/1", "other"):
        repo.push({**single(tmp_path), "README.md": ref.encode() * len(repo.commits)}, ref)
    commit = repo.refs[revision or "main"] if revision != "a commit" else repo.refs["other"]
    if option == revision == "a commit":
        option = revision = commit
    said = report(source, option)
    assert (said["source"]["id"], said["source"]["revision"]) == (NAME, revision)
    assert said["source"]["commit"] == commit
    assert all(commit in path for path in hub.paths()[1:])


def test_a_push_between_two_reads_changes_nothing(hub: FakeHub, tmp_path: Path) -> None:
    files = sharded(3, tmp_path)
    repo = hub.repo(NAME, files)
    first = repo.refs["main"]

    def push(path: str) -> None:
        repo.push({**files, "config.json": b"{}", "README.md": path.encode()})

    hub.before_file = push
    said = report(NAME)
    assert len(repo.commits) > 1
    assert said["source"]["commit"] == first
    assert said["summary"]["exit_code"] == 0


def test_a_server_that_answers_with_another_commit(hub: FakeHub, tmp_path: Path) -> None:
    repo = hub.repo(NAME, single(tmp_path))
    first = repo.refs["main"]

    def swap(path: str) -> None:
        repo.refs[first] = repo.push({**single(tmp_path), "new": b""})

    hub.before_file = swap
    error = report(NAME)["error"]
    assert error["kind"] == "bad-answer"
    assert first in error["message"]


def test_a_folder_of_a_repo(hub: FakeHub, tmp_path: Path) -> None:
    draft = {f"dspark/small/{name}": content for name, content in sharded(2, tmp_path).items()}
    target = {"config.json": b"{}", "model-00001-of-00002.safetensors": b"", "dspark/config.json": b"{}"}
    commit = hub.repo("org/target", {**target, **draft}).refs["main"]
    said = report("org/target@main:dspark/small/")
    assert said["error"] is None
    assert said["source"]["id"] == "org/target:dspark/small"
    assert said["source"]["commit"] == commit
    assert len(said["source"]["files"]) == 2
    assert len(hub.log) == 5
    assert all(f"/{commit}/dspark/small/" in path for path in hub.paths()[1:])
    error = report("org/target:dspark")["error"]
    assert (error["kind"], error["message"]) == (
        "no-safetensors",
        "org/target:dspark: no .safetensors file",
    )
    assert report("org/target:dflash/")["error"] == {
        "kind": "no-such-source",
        "message": "org/target:dflash: no such folder in the repo",
    }


def test_a_token_opens_private_and_gated_repos(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", hub.token)
    repo = hub.repo(NAME, single(tmp_path))
    repo.private = repo.gated = True
    assert report(NAME)["error"] is None


def test_large_files_may_lie_elsewhere_and_the_token_stays_here(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", hub.token)
    with serve(FakeHub(name_commit=False)) as storage:
        storage.repos = hub.repos
        hub.repo(NAME, single(tmp_path))
        hub.storage = storage.url
        assert report(NAME)["error"] is None
    assert hub.log[-1].headers["Authorization"] == f"Bearer {hub.token}"
    (request,) = storage.log
    assert request.range == f"bytes=0-{FIRST_READ - 1}"
    assert "Authorization" not in request.headers


def test_a_mirror_that_says_less(hub: FakeHub, tmp_path: Path) -> None:
    hub.repo(NAME, sharded(2, tmp_path))
    hub.name_commit = hub.list_sizes = hub.error_codes = False
    said = report(NAME)
    assert said["error"] is None
    assert said["summary"]["exit_code"] == 0


def missing(hub: FakeHub, repo: Repo) -> None:
    del hub.repos[NAME]


def private(hub: FakeHub, repo: Repo) -> None:
    repo.private = True


def gated(hub: FakeHub, repo: Repo) -> None:
    repo.gated = True


def disabled(hub: FakeHub, repo: Repo) -> None:
    repo.disabled = True


def without_codes(hub: FakeHub, repo: Repo) -> None:
    repo.private, hub.error_codes = True, False


def not_found_without_codes(hub: FakeHub, repo: Repo) -> None:
    hub.failures.append(Failure(404))


def broken_server(hub: FakeHub, repo: Repo) -> None:
    hub.failures.append(Failure(501))


def no_config(hub: FakeHub, repo: Repo) -> None:
    repo.push({"model.safetensors": b""})


def nothing_at_all(hub: FakeHub, repo: Repo) -> None:
    repo.push({})


def no_weights(hub: FakeHub, repo: Repo) -> None:
    repo.push({"config.json": b"{}", "README.md": b""})


def pickled(hub: FakeHub, repo: Repo) -> None:
    repo.push({"config.json": b"{}", "pytorch_model.bin": b"", "training_args.bin": b""})


def gguf(hub: FakeHub, repo: Repo) -> None:
    repo.push({"draft-Q4_K_M.gguf": b"", "README.md": b""})


def empty_file(hub: FakeHub, repo: Repo) -> None:
    repo.push({"config.json": b"{}", "model.safetensors": b""})


def listed_and_gone(hub: FakeHub, repo: Repo) -> None:
    hub.failures.append(Failure(404, {"X-Error-Code": "EntryNotFound"}, where="config.json"))


@pytest.mark.parametrize(
    ("setting", "kind", "message"),
    [
        (missing, "no-such-repo", "org/draft: no such repo on {hub}, or a private one that needs another"),
        (private, "no-such-repo", "org/draft: no such repo on {hub}, or a private one"),
        (gated, "gated-repo", "gated: accept its terms"),
        (disabled, "no-access", "{hub} has disabled the repo"),
        (without_codes, "no-access", "{hub} answers 401: set HF_TOKEN"),
        (not_found_without_codes, "no-such-repo", "{hub} answers 404: no such repo or revision"),
        (broken_server, "network", "{hub} answers 501"),
        (no_config, "no-config", "org/draft: no config.json"),
        (nothing_at_all, "no-config", "org/draft: no config.json"),
        (no_weights, "no-safetensors", "org/draft: no .safetensors file"),
        (pickled, "no-safetensors", "no .safetensors file (pytorch_model.bin is pickled, which is not read"),
        (gguf, "no-config", "no config.json (draft-Q4_K_M.gguf is GGUF, which is not read here)"),
        (empty_file, "malformed-header", "org/draft/model.safetensors: 0 bytes are too few"),
        (listed_and_gone, "bad-answer", "org/draft/config.json: {hub} lists it and does not have it"),
    ],
)  # fmt: skip
def test_errors(
    hub: FakeHub, tmp_path: Path, setting: Callable[[FakeHub, Repo], None], kind: str, message: str
) -> None:
    setting(hub, hub.repo(NAME, single(tmp_path)))
    said = report(NAME)
    assert said["error"]["kind"] == kind
    assert message.format(hub=hub.url) in said["error"]["message"]
    assert "\n" not in said["error"]["message"]
    assert said["summary"]["exit_code"] == 3
    assert (said["source"]["kind"], said["source"]["id"]) == ("hub", NAME)


def test_no_such_revision(hub: FakeHub, tmp_path: Path) -> None:
    hub.repo(NAME, single(tmp_path))
    for said in (report(f"{NAME}@nothing"), report(NAME, "nothing")):
        assert said["error"] == {
            "kind": "no-such-revision",
            "message": "org/draft: the repo has no such revision",
        }
        assert said["source"]["revision"] == "nothing"


def test_nobody_answers(hub: FakeHub, tmp_path: Path, slept: list[float]) -> None:
    with serve(FakeHub()) as gone:
        pass
    hub.url = gone.url
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("huggingface_hub.constants.ENDPOINT", gone.url)
        error = report(NAME)["error"]
    assert error["kind"] == "network"
    assert f"{gone.url} cannot be read (ConnectError" in error["message"]
    assert slept == []


@pytest.mark.parametrize(
    "answer",
    [b"[]", b"{}", b'{"id": "org/draft"}', b"<html>", b'{"id": "org/draft", "sha": "main"}', b"\xff"],
)
def test_no_hub_answers(hub: FakeHub, monkeypatch: pytest.MonkeyPatch, answer: bytes) -> None:
    monkeypatch.setattr(
        "hub.fake_hub._Handler._api", lambda handler, *path: handler._answer(200, answer), raising=True
    )
    error = report(NAME)["error"]
    assert error["kind"] == "bad-answer"
    assert f"{hub.url} does not answer as a Hub does" in error["message"]


@pytest.mark.parametrize(
    ("failures", "waits"),
    [
        ([Failure(503, where="/api/")], [WAITS[0]]),
        ([Failure(429, {"Retry-After": "7"}, "/api/")], [7.0]),
        ([Failure(429, {"RateLimit": '"api";r=0;t=5'}, "/api/")], [6.0]),
        ([Failure(429, {"RateLimit": '"api";r=9;t=5'}, "config")], [WAITS[0]]),
        ([Failure(503, where="config"), Failure(429, where="config")], [*WAITS[:2]]),
        ([Failure(500, {"Retry-After": "0"}, "safetensors", times=3)], [0.0] * 3),
        ([Failure(503, where="/api/", times=len(WAITS))], [*WAITS]),
    ],
)
def test_passing_failures_are_waited_for(
    hub: FakeHub, tmp_path: Path, slept: list[float], failures: list[Failure], waits: list[float]
) -> None:
    hub.repo(NAME, single(tmp_path))
    hub.failures = [replace(failure) for failure in failures]
    assert report(NAME)["error"] is None
    assert slept == waits
    assert len(hub.log) == 3 + len(waits)


@pytest.mark.parametrize(
    ("failure", "requests", "message"),
    [
        (Failure(429, {"Retry-After": "3600"}, times=99), 1, "{hub} answers 429, too many requests"),
        (Failure(429, {"Retry-After": "1"}, times=99), 5, "{hub} answers 429, too many requests"),
        (Failure(503, times=99), 5, "{hub} answers 503"),
    ],
)
def test_patience_ends(
    hub: FakeHub, tmp_path: Path, slept: list[float], failure: Failure, requests: int, message: str
) -> None:
    hub.repo(NAME, single(tmp_path))
    hub.failures = [replace(failure)]
    error = report(NAME)["error"]
    assert error["kind"] == "network"
    assert message.format(hub=hub.url) in error["message"]
    assert len(hub.log) == requests == len(slept) + 1


def test_a_limit_of_an_hour_holds_for_all_that_is_asked_later(
    hub: FakeHub, tmp_path: Path, slept: list[float]
) -> None:
    hub.repo(NAME, single(tmp_path))
    hub.failures = [Failure(429, {"Retry-After": "3600"})]
    assert "answers 429" in report(NAME)["error"]["message"]
    later = report(NAME)["error"]
    assert (later["kind"], len(hub.log), slept) == ("network", 1, [])
    assert "takes no request for another 3600 s" in later["message"]
    slept.append(3601.0)
    assert report(NAME)["error"] is None


def test_an_answer_cut_short_is_asked_for_again(hub: FakeHub, tmp_path: Path, slept: list[float]) -> None:
    hub.repo(NAME, sharded(2, tmp_path))
    hub.cut_to, hub.cuts = 100, 2
    assert report(NAME)["error"] is None
    assert len(slept) == 2


def test_answers_that_are_always_cut_short(hub: FakeHub, tmp_path: Path, slept: list[float]) -> None:
    hub.repo(NAME, single(tmp_path))
    hub.cut_to = 2000
    error = report(NAME)["error"]
    assert error["kind"] == "network"
    assert error["message"].startswith("org/draft/model.safetensors: ")
    assert len(slept) == len(WAITS)


def test_every_bad_shard_is_named(hub: FakeHub, tmp_path: Path) -> None:
    files = sharded(4, tmp_path)
    first, second, third, _ = sorted(name for name in files if name.endswith(".safetensors"))
    pointer = b"version https://git-lfs.example/spec/v1\noid sha256:0\nsize 1\n"
    del files[third]
    hub.repo(NAME, {**files, first: pointer, second: pointer})
    error = report(NAME)["error"]
    assert error["kind"] == "malformed-header"
    assert error["message"] == (
        "org/draft: 3 of 4 weight files cannot be read:"
        f" {first}, {second}: a Git LFS pointer, not the file that it stands for (`git lfs pull` fetches"
        " that);"
        f" {third}: {INDEX} names it, and it is not there"
    )


def test_names_cannot_break_the_line(hub: FakeHub, tmp_path: Path) -> None:
    hub.repo(NAME, {"config.json": config(), "a\n\x1b[31m?#%.safetensors": b"{}"})
    message = report(NAME)["error"]["message"]
    assert message.startswith("org/draft/a\\n\\x1b[31m?#%.safetensors: 2 bytes")


def test_only_these_files_import_the_client() -> None:
    package = Path(__file__).parents[2] / "dflash_audit"
    pattern = re.compile(r"^\s*(from|import) (huggingface_hub|httpx)", re.MULTILINE)
    folders = [
        path.parent.name
        for path in package.rglob("*.py")
        if not path.name.startswith("hub") and pattern.search(path.read_text())
    ]
    assert {*folders} == {"publishing"}


def test_the_index_decides_which_files_are_read(hub: FakeHub, tmp_path: Path) -> None:
    files: dict[str, Any] = {
        **sharded(2, tmp_path),
        "old.safetensors": b"unread",
        "consolidated.safetensors": b"",
    }
    hub.repo(NAME, files)
    said = report(NAME)
    assert not any("old" in path or "consolidated" in path for path in hub.paths())
    assert [f["subject"] for f in said["findings"] if f["rule"] == "odd-layout"] == ["old.safetensors"]


def test_an_index_out_of_the_folder(hub: FakeHub, tmp_path: Path) -> None:
    index = {"weight_map": {"fc.weight": "../other/model.safetensors"}}
    hub.repo(NAME, {**single(tmp_path), INDEX: json.dumps(index).encode()})
    error = report(NAME)["error"]
    assert error["kind"] == "bad-index"
    assert error["message"] == f"{NAME}/{INDEX}: names files outside its folder: '../other/model.safetensors'"
