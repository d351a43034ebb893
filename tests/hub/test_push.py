"""A folder goes up only after its audit passed, byte for byte, and nothing else does."""

import hashlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hub.drafts import INDEX, config, sharded, single, write
from hub.fake_hub import Failure, FakeHub
from hub.test_command_line import run
from report_schema import valid

NAME = "org/draft"

needs_xet = pytest.mark.skipif(importlib.util.find_spec("hf_xet") is None, reason="needs hf_xet")


@pytest.fixture
def draft(tmp_path: Path) -> Path:
    """A draft that serves, with a card."""
    return write({**single(tmp_path), "README.md": b"---\nlicense: mit\n---\n"}, tmp_path / "draft")


def push(
    hub: FakeHub, folder: Path | str, *words: str, token: str | None = "hf_right", **environment: str
) -> subprocess.CompletedProcess[str]:
    """The command, with the right token unless another is given, and large files by Git LFS."""
    home = f"{os.path.dirname(folder)}/home"
    env = {"HF_HOME": home, "HF_HUB_DISABLE_XET": "1", **({"HF_TOKEN": token} if token else {})}
    return run(hub, "push", str(folder), *words, cwd=None, **{**env, **environment})


def probed(hub: FakeHub, probe: str, *words: str) -> subprocess.CompletedProcess[str]:
    """The program with a part of it replaced, as `probe` does before it starts it."""
    env = {"HF_ENDPOINT": hub.url, "HF_TOKEN": "hf_right", "HF_HUB_DISABLE_XET": "1", "NO_COLOR": "1"}
    return subprocess.run(
        [sys.executable, "-c", probe, *words],
        capture_output=True,
        text=True,
        env={**os.environ, **env},
        check=False,
    )


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def at(hub: FakeHub, ref: str = "main", name: str = NAME) -> dict[str, bytes]:
    """What a repo holds, but for what a new one is made with."""
    repo = hub.repos[name]
    return {p: c for p, c in repo.commits[repo.refs[ref]].items() if p != ".gitattributes"}


def broken(folder: Path) -> Path:
    """The draft without the key that its sliding layers need."""
    text = config().decode().replace(' "use_sliding_window": true,\n', "")
    (folder / "config.json").write_text(text)
    return folder


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    return done.stderr.splitlines()[-1]


def test_a_new_repo_gets_it_byte_for_byte(hub: FakeHub, draft: Path) -> None:
    done = push(hub, draft, NAME)
    assert done.returncode == 0
    assert at(hub) == files(draft)
    first, second = done.stderr.splitlines()
    assert first == (
        "dflash-audit: uploading 3 files, 915.9 kB to org/draft, a new repo:"
        " README.md, config.json, model.safetensors"
    )
    assert second == f"dflash-audit: uploaded: {hub.url}/org/draft/commit/{hub.repos[NAME].refs['main']}"
    assert "exit code 0" in done.stdout
    assert "upload" not in done.stdout
    assert not hub.repos[NAME].private


@needs_xet
def test_by_xet(hub: FakeHub, draft: Path, tmp_path: Path) -> None:
    hub.xet = f"local://{tmp_path / 'cas'}"
    done = push(hub, draft, NAME, HF_HUB_DISABLE_XET="0")
    assert (done.returncode, last_line(done).split()[1]) == (0, "uploaded:")
    there = at(hub)
    digest = hashlib.sha256((draft / "model.safetensors").read_bytes()).hexdigest()
    assert there.pop("model.safetensors").decode() == digest
    assert there == {n: c for n, c in files(draft).items() if n != "model.safetensors"}
    assert list((tmp_path / "cas").rglob("xorbs/*"))
    assert not any("lfs" in request or "storage" in request for request in hub.writes())


def test_a_failing_draft_uploads_nothing(hub: FakeHub, draft: Path) -> None:
    done = push(hub, broken(draft), NAME)
    assert (done.returncode, hub.log) == (1, [])
    assert done.stderr == "dflash-audit: nothing was uploaded\n"
    assert "refused-build" in done.stdout


def test_what_the_gate_lets_pass_goes_up(hub: FakeHub, draft: Path) -> None:
    broken(draft)
    for words in (["--fail-on", "never"], ["--ignore", "refused-build"]):
        assert push(hub, draft, NAME, *words).returncode == 0
    assert at(hub) == files(draft)
    hub.log.clear()
    assert push(hub, draft, NAME, "--ignore", "refused-build", "--fail-on", "warning").returncode == 1
    assert hub.log == []


def test_another_engine_decides_if_named(hub: FakeHub, tmp_path: Path) -> None:
    seed = Path(__file__).parents[2] / "fixtures" / "seed-w8a16"
    assert push(hub, write(files(seed), tmp_path / "seed"), NAME, "--engine", "sglang-0.5.23").returncode == 1
    assert hub.log == []
    assert push(hub, tmp_path / "seed", NAME, "--dry-run").returncode == 0


@pytest.mark.parametrize("content", [b"{", None])
def test_what_cannot_be_read_uploads_nothing(hub: FakeHub, draft: Path, content: bytes | None) -> None:
    if content is None:
        (draft / "config.json").unlink()
    else:
        (draft / "config.json").write_bytes(content)
    done = push(hub, draft, NAME)
    assert (done.returncode, done.stdout, hub.log) == (3, "", [])
    assert done.stderr.endswith("\ndflash-audit: nothing was uploaded\n")


def test_json_is_the_report_alone(hub: FakeHub, draft: Path) -> None:
    done = push(hub, draft, NAME, "--json")
    said: dict[str, Any] = valid(json.loads(done.stdout))
    assert (done.returncode, said["source"]["id"]) == (0, str(draft))
    assert "uploaded" in done.stderr
    assert json.loads(push(hub, broken(draft), NAME, "--json").stdout)["summary"]["exit_code"] == 1


def test_a_dry_run_writes_nothing(hub: FakeHub, draft: Path) -> None:
    done = push(hub, draft, NAME, "--dry-run", "--private", "--create-pr", token=None)
    assert (done.returncode, hub.writes(), hub.repos) == (0, [], {})
    assert last_line(done) == (
        "dflash-audit: would upload 3 files, 915.9 kB to org/draft, a new private repo as a pull request:"
        " README.md, config.json, model.safetensors"
    )


def test_a_private_repo(hub: FakeHub, draft: Path) -> None:
    assert push(hub, draft, NAME, "--private").returncode == 0
    assert hub.repos[NAME].private
    assert push(hub, draft, NAME, "--private").returncode == 0
    hub.repos[NAME].private = False
    hub.log.clear()
    done = push(hub, draft, NAME, "--private")
    assert (done.returncode, hub.writes()) == (3, [])
    assert done.stderr == (
        "dflash-audit: org/draft: it is there and public, and --private makes only a new repo private\n"
    )


def test_a_pull_request(hub: FakeHub, draft: Path) -> None:
    hub.repo(NAME, {"README.md": b"old", "docs/a.md": b""})
    done = push(hub, draft, NAME, "--create-pr", "--commit-message", "A draft")
    assert done.returncode == 0
    assert last_line(done) == f"dflash-audit: opened pull request 1: {hub.url}/org/draft/discussions/1"
    assert at(hub, "refs/pr/1") == {**files(draft), "docs/a.md": b""}
    assert at(hub) == {"README.md": b"old", "docs/a.md": b""}
    header = json.loads(hub.log[-1].body.splitlines()[0])
    assert header["value"]["summary"] == "A draft"


def test_a_reader_may_propose_and_not_commit(hub: FakeHub, draft: Path) -> None:
    hub.repo(NAME, {"README.md": b"old"})
    done = push(hub, draft, NAME, token="hf_reader")
    assert (done.returncode, at(hub)) == (3, {"README.md": b"old"})
    assert last_line(done) == (
        f"dflash-audit: org/draft: {hub.url} answers 403: the token may not write there"
        " (You don't have the rights to write to this repo)"
    )
    assert push(hub, draft, NAME, "--create-pr", token="hf_reader").returncode == 0
    assert at(hub, "refs/pr/1") == files(draft)


def test_revisions(hub: FakeHub, draft: Path) -> None:
    repo = hub.repo(NAME, {"docs/a.md": b""})
    repo.pull_request({"docs/b.md": b""})
    assert push(hub, draft, NAME, "--revision", "v2").returncode == 0
    assert at(hub, "v2") == {**files(draft), "docs/a.md": b""}
    assert push(hub, draft, NAME, "--revision", "refs/pr/1").returncode == 0
    assert at(hub, "refs/pr/1") == {**files(draft), "docs/b.md": b""}
    hub.log.clear()
    done = push(hub, draft, NAME, "--revision", "refs/pr/7")
    assert (done.returncode, hub.writes()) == (3, [])
    assert done.stderr == "dflash-audit: org/draft@refs/pr/7: the repo has no such revision\n"
    assert push(hub, draft, "org/new", "--revision", "v1").returncode == 0
    assert at(hub, "v1", "org/new") == files(draft)
    assert at(hub, "main", "org/new") == {}


def test_again_commits_nothing(hub: FakeHub, draft: Path) -> None:
    push(hub, draft, NAME)
    commit = hub.repos[NAME].refs["main"]
    done = push(hub, draft, NAME)
    assert (done.returncode, hub.repos[NAME].refs["main"]) == (0, commit)
    assert last_line(done) == f"dflash-audit: org/draft had all of it at {commit}: nothing was committed"
    (draft / "README.md").write_text("---\nlicense: apache-2.0\n---\n")
    assert push(hub, draft, NAME).returncode == 0
    assert at(hub) == files(draft)


def test_what_stays_behind(hub: FakeHub, draft: Path, tmp_path: Path) -> None:
    expected = files(draft)
    secret = tmp_path / "token"
    secret.write_text("hf_secret")
    for name in (
        ".env", ".git/config", ".cache/huggingface/x", "sub/.hidden/key", "sub/.env",
        "config.json.orig", "config.json.orig.2",
    ):  # fmt: skip
        (draft / name).parent.mkdir(parents=True, exist_ok=True)
        (draft / name).write_text("secret")
    (draft / "notes.txt").symlink_to(secret)
    (draft / "elsewhere").symlink_to(tmp_path)
    (draft / "gone").symlink_to(tmp_path / "nothing")
    os.mkfifo(draft / "pipe")
    more = {".gitattributes": b"*.safetensors filter=lfs\n", "sub/a.txt": b"a", "config.json.original": b""}
    write(more, draft)
    (draft / "copy.md").symlink_to("README.md")
    (draft / ".gitignore").write_text("*")
    done = push(hub, draft, NAME)
    assert done.returncode == 0
    expected |= {"sub/a.txt": b"a", "config.json.original": b"", "copy.md": expected["README.md"]}
    assert at(hub) == expected
    assert hub.repos[NAME].commits[hub.repos[NAME].refs["main"]][".gitattributes"] == more[".gitattributes"]
    assert done.stderr.splitlines()[1] == (
        "dflash-audit: left behind: .cache/, .env, .git/, .gitignore, config.json.orig, config.json.orig.2,"
        " elsewhere/, gone, notes.txt, pipe, sub/.env, sub/.hidden/"
    )


def test_a_link_to_weights_elsewhere_is_followed(hub: FakeHub, draft: Path, tmp_path: Path) -> None:
    expected = files(draft)
    (draft / "model.safetensors").rename(tmp_path / "weights.safetensors")
    (draft / "model.safetensors").symlink_to(tmp_path / "weights.safetensors")
    assert push(hub, draft, NAME).returncode == 0
    assert at(hub) == expected


CHANGES: dict[tuple[str, str], Callable[[Path], object]] = {
    ("repos/create", "config.json"): lambda draft: (draft / "config.json").write_bytes(config() + b" "),
    ("preupload", "model.safetensors"): lambda draft: os.utime(draft / "model.safetensors"),
    ("storage", "README.md"): lambda draft: (draft / "README.md").unlink(),
    ("storage", "new.safetensors"): lambda draft: (draft / "new.safetensors").write_bytes(b""),
}


@pytest.mark.parametrize(("when", "name"), CHANGES)
def test_a_file_that_changes_meanwhile_stops_it(hub: FakeHub, draft: Path, when: str, name: str) -> None:
    def change(path: str) -> None:
        if when in path:
            hub.before_write = len
            CHANGES[when, name](draft)

    hub.before_write = change
    done = push(hub, draft, NAME)
    assert (done.returncode, at(hub)) == (3, {})
    assert last_line(done) == (
        f"dflash-audit: {draft}: changed since it was audited, and nothing was committed: {name}"
    )


def test_a_push_of_another_meanwhile_is_a_conflict(hub: FakeHub, draft: Path) -> None:
    repo = hub.repo(NAME, {"README.md": b"old"})

    def another(path: str) -> None:
        if "/commit/" in path:
            repo.push({"README.md": b"newer"})

    hub.before_write = another
    done = push(hub, draft, NAME)
    assert (done.returncode, at(hub)) == (3, {"README.md": b"newer"})
    assert last_line(done) == (
        "dflash-audit: org/draft: the repo was changed in the meantime, and nothing was committed: push again"
    )


def test_stale_files_of_the_repo_stop_it(hub: FakeHub, draft: Path, tmp_path: Path) -> None:
    """What the repo would hold after it is not what was audited."""
    stale = {
        "model-00002-of-00002.safetensors": b"", INDEX: b"", "hf_quant_config.json": b"{}",
    }  # fmt: skip
    for name, content in stale.items():
        hub.repo(NAME, {name: content, "onnx/model.safetensors": b"", "tokenizer.json": b"{}"})
        for words in ([], ["--create-pr"], ["--dry-run"]):
            done = push(hub, draft, NAME, *words)
            assert (done.returncode, hub.writes()) == (3, [])
            assert last_line(done) == (
                f"dflash-audit: org/draft: it holds {name}, which the folder lacks and an engine would read"
                " too: remove it there, or push elsewhere"
            )
            assert last_line(push(hub, draft, NAME, "--revision", "v2")) == last_line(done)
            assert (hub.writes(), {*hub.repos[NAME].refs}) == ([], {"main"})
    # An index names what is read: the weights beside it are not.
    hub.repo(NAME, {"model.safetensors": b""})
    assert push(hub, write(sharded(2, tmp_path), tmp_path / "sharded"), NAME).returncode == 0


def test_a_new_branch_starts_at_what_was_looked_at(hub: FakeHub, draft: Path) -> None:
    repo = hub.repo(NAME, {"docs/a.md": b""})

    def another(path: str) -> None:
        if "/branch/" in path:
            repo.push({"hf_quant_config.json": b"{}"})

    hub.before_write = another
    assert push(hub, draft, NAME, "--revision", "v2").returncode == 0
    assert at(hub, "v2") == {**files(draft), "docs/a.md": b""}


def test_a_gitignore_of_the_repo_loses_nothing_in_silence(hub: FakeHub, draft: Path) -> None:
    hub.repo(NAME, {".gitignore": b"*.safetensors\n"})
    done = push(hub, draft, NAME)
    assert (done.returncode, at(hub)) == (3, {".gitignore": b"*.safetensors\n"})
    assert last_line(done) == (
        "dflash-audit: org/draft: its .gitignore leaves out model.safetensors: nothing was committed"
    )


def test_no_token(hub: FakeHub, draft: Path) -> None:
    done = push(hub, draft, NAME, token=None)
    assert (done.returncode, hub.writes()) == (3, [])
    assert last_line(done) == (
        "dflash-audit: org/draft: no token: set HF_TOKEN, or log in with `hf auth login`"
    )


def test_a_wrong_token(hub: FakeHub, draft: Path) -> None:
    done = push(hub, draft, NAME, token="hf_wrong")
    assert (done.returncode, hub.repos) == (3, {})
    assert last_line(done) == (
        f"dflash-audit: org/draft: {hub.url} answers 401: set HF_TOKEN to a token that is valid"
    )


def test_a_namespace_of_another(hub: FakeHub, draft: Path) -> None:
    done = push(hub, draft, "other/draft")
    assert (done.returncode, hub.repos) == (3, {})
    assert last_line(done) == (
        f"dflash-audit: other/draft: {hub.url} answers 403: the token may not write there"
        " (You don't have the rights to create a model under other)"
    )


OPEN = "the commit may have been made: look there before you push again"


@pytest.mark.parametrize(
    ("status", "where", "told"),
    [
        (409, "repos/create", "answers 409, a conflict"),
        (404, "preupload", "answers 404: there is no such thing"),
        (413, "/commit/", "answers 413"),
        (429, "/commit/", "answers 429, too many requests: wait, and try again"),
        (502, "/commit/", f"answers 502; {OPEN}"),
        (500, "repos/create", "answers 500"),
        (503, "/api/models/org/draft", "answers 503"),
    ],
)
def test_other_answers(hub: FakeHub, draft: Path, status: int, where: str, told: str) -> None:
    hub.failures.append(Failure(status, where=where))
    done = push(hub, draft, NAME)
    assert done.returncode == 3
    assert last_line(done) == f"dflash-audit: org/draft: {hub.url} {told}"
    assert at(hub) == {} if NAME in hub.repos else True


def test_a_lost_answer_leaves_open_whether_it_is_committed(hub: FakeHub, draft: Path) -> None:
    hub.lose.append("/commit/")
    done = push(hub, draft, NAME)
    assert (done.returncode, at(hub)) == (3, files(draft))
    assert last_line(done).startswith(f"dflash-audit: org/draft: {hub.url} cannot be reached (")
    assert last_line(done).endswith(f"; {OPEN}")


def test_a_file_that_cannot_be_read_makes_no_repo(hub: FakeHub, draft: Path) -> None:
    """Its permissions let it, and reading it does not work: no matter of the network."""
    probe = (
        "import sys; sys.argv = ['dflash-audit', 'push', *sys.argv[1:]]\n"
        "from pathlib import Path\n"
        "right = Path.read_bytes\n"
        "def read_bytes(path):\n"
        "    if path.name == 'README.md': raise OSError(5, 'Input/output error', str(path))\n"
        "    return right(path)\n"
        "Path.read_bytes = read_bytes\n"
        "from dflash_audit.cli import main\n"
        "main()"
    )
    done = probed(hub, probe, str(draft), NAME)
    assert (done.returncode, hub.writes(), hub.repos) == (3, [], {})
    assert f"{draft}/README.md: cannot be read: " in last_line(done)
    assert "Input/output error" in last_line(done)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ("PermissionError(13, 'Permission denied', '/a/b')", "org/draft: /a/b: Permission denied"),
        ("ConnectionResetError(104, 'reset')", "cannot be reached (ConnectionResetError"),
        ("KeyError('files')", "does not answer as a Hub does ('files')"),
    ],
)
def test_what_the_client_stumbles_over(hub: FakeHub, draft: Path, error: str, told: str) -> None:
    probe = (
        "import sys; sys.argv = ['dflash-audit', 'push', *sys.argv[1:]]\n"
        "from huggingface_hub import HfApi\n"
        f"def preupload(*given, **named): raise {error}\n"
        "HfApi.preupload_lfs_files = preupload\n"
        "from dflash_audit.cli import main\n"
        "main()"
    )
    done = probed(hub, probe, str(draft), NAME)
    assert (done.returncode, told in last_line(done)) == (3, True)


def test_a_fault_of_the_program_is_not_the_hubs(hub: FakeHub, draft: Path) -> None:
    probe = (
        "import sys; sys.argv = ['dflash-audit', 'push', *sys.argv[1:]]\n"
        "import dflash_audit.publishing.upload as module\n"
        "def changes(before, now): raise KeyError('own')\n"
        "module.changes = changes\n"
        "from dflash_audit.cli import main\n"
        "main()"
    )
    done = probed(hub, probe, str(draft), NAME)
    assert (done.returncode, hub.writes()) == (3, [])
    assert "the program itself failed (KeyError: 'own')" in last_line(done)


def test_a_card_that_the_hub_does_not_take(hub: FakeHub, draft: Path) -> None:
    (draft / "README.md").write_text("---\nlicense: [\n---\n")
    done = push(hub, draft, NAME)
    assert (done.returncode, at(hub)) == (3, {})
    assert last_line(done) == (
        f"dflash-audit: org/draft: {hub.url} does not take the card"
        " (Invalid metadata in README.md. - bad license)"
    )


def test_a_warning_about_the_card_is_a_line(hub: FakeHub, draft: Path) -> None:
    (draft / "README.md").write_text("no metadata")
    done = push(hub, draft, NAME)
    assert done.returncode == 0
    assert done.stderr.splitlines()[1] == (
        "dflash-audit: Warnings while validating metadata in README.md: - empty or missing yaml"
    )


def test_no_network(hub: FakeHub, draft: Path) -> None:
    offline = push(hub, draft, NAME, HF_HUB_OFFLINE="1")
    assert (offline.returncode, hub.log) == (3, [])
    assert last_line(offline) == ("dflash-audit: org/draft: HF_HUB_OFFLINE is set, and this needs the Hub")
    dead = push(hub, draft, NAME, HF_ENDPOINT="http://127.0.0.1:1")
    assert (dead.returncode, len(dead.stderr.splitlines())) == (3, 1)
    assert "http://127.0.0.1:1 cannot be reached" in dead.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["{draft}", "draft"], "draft is no repo of the Hub: org/name"),
        (["{draft}", "org/draft@v1"], "org/draft@v1 is no repo of the Hub: org/name"),
        (["{draft}", "org/draft:sub/"], "org/draft:sub/ is no repo of the Hub: org/name"),
        (["{draft}", "a/b/c"], "a/b/c is no repo of the Hub: org/name"),
        (["{draft}", "org/\x1b[31m"], "org/\\x1b[31m is no repo of the Hub: org/name"),
        (["org/other", "org/draft"], "org/other is no folder here: push uploads one."),
        (["{draft}/model.safetensors", "org/draft"], "model.safetensors is no folder here"),
        (["{draft}", "org/draft", "--create-pr", "--revision", "v1"], "no --revision"),
        (["{draft}", "org/draft", "--baseline", "nothing.json"], "nothing.json: cannot be read"),
    ],
)
def test_usage(hub: FakeHub, draft: Path, words: list[str], told: str) -> None:
    done = run(hub, "push", *(word.format(draft=draft) for word in words), HF_TOKEN="hf_right")
    assert (done.returncode, done.stdout, hub.log) == (2, "", [])
    assert told in done.stderr


def test_a_folder_that_is_not_there(hub: FakeHub, tmp_path: Path) -> None:
    done = push(hub, tmp_path / "nothing", NAME)
    assert (done.returncode, done.stdout, hub.log) == (3, "", [])
    assert done.stderr == (
        f"dflash-audit: {tmp_path}/nothing: no such folder or file\ndflash-audit: nothing was uploaded\n"
    )


@pytest.mark.parametrize("name", ["loop", "sub/loop"])
def test_a_link_to_itself(hub: FakeHub, draft: Path, name: str) -> None:
    (draft / name).parent.mkdir(exist_ok=True)
    (draft / name).symlink_to("loop")
    done = push(hub, draft, NAME)
    assert (done.returncode, hub.log) == (3, [])
    assert done.stderr == (
        f"dflash-audit: {draft}/{name}: Too many levels of symbolic links\n"
        "dflash-audit: nothing was uploaded\n"
    )


def test_hostile_names_stay_a_line(hub: FakeHub, draft: Path) -> None:
    (draft / "a\x1b[31m\n::error::pwned").write_text("")
    done = push(hub, draft, NAME)
    assert (done.returncode, at(hub)) == (0, files(draft))
    lines = done.stderr.splitlines()
    assert all(line.isprintable() and line.startswith("dflash-audit: ") for line in lines)
    assert "a\\x1b[31m\\n::error::pwned" in lines[0]


def test_a_name_that_is_not_utf8(hub: FakeHub, draft: Path) -> None:
    with open(os.fsencode(draft) + b"/\xff", "wb"):
        pass
    done = push(hub, draft, NAME)
    assert (done.returncode, hub.log) == (3, [])
    assert "its name is not UTF-8, and no repo takes it" in done.stderr
    said = valid(json.loads(push(hub, draft, NAME, "--json").stdout))
    assert (said["error"]["kind"], said["summary"]["exit_code"]) == ("unreadable-file", 3)


def test_a_folder_that_comes_to_be_in_its_audit(hub: FakeHub, draft: Path) -> None:
    """What was audited was not looked at before, and so nothing tells whether it is what would go up."""
    probe = (
        "import os, sys; _, draft = sys.argv; sys.argv = ['dflash-audit', 'push', draft, 'org/draft']\n"
        "import dflash_audit.publishing.folder_audit as module\n"
        "right = module.audit\n"
        "def audit(request): os.rename(f'{draft}.late', draft); return right(request)\n"
        "module.audit = audit\n"
        "from dflash_audit.cli import main\n"
        "main()"
    )
    draft.rename(f"{draft}.late")
    done = probed(hub, probe, str(draft))
    assert (done.returncode, done.stdout, hub.log) == (3, "", [])
    assert done.stderr == (
        f"dflash-audit: {draft}: there was no such folder before its audit\n"
        "dflash-audit: nothing was uploaded\n"
    )


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ("/api/repos/create", "nothing was committed"),
        ("/preupload/", "nothing was committed"),
        (
            "/commit/",
            "org/draft: the commit may have been made: look there before you push again",
        ),
    ],
)
def test_an_interrupt_says_whether_there_may_be_a_commit(
    where: str, told: str, hub: FakeHub, draft: Path
) -> None:
    reached, go_on = threading.Event(), threading.Event()

    def hold(path: str) -> None:
        if where in path:
            reached.set()
            go_on.wait(90)

    hub.before_write = hold
    started = subprocess.Popen(
        [sys.executable, "-m", "dflash_audit", "push", str(draft), NAME],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "HF_ENDPOINT": hub.url, "HF_TOKEN": "hf_right", "HF_HUB_DISABLE_XET": "1"},
    )
    assert reached.wait(30)
    started.send_signal(signal.SIGINT)
    _, stderr = started.communicate(timeout=60)  # while the answer is still awaited
    go_on.set()
    assert (started.returncode, stderr.splitlines()[-1]) == (130, f"dflash-audit: interrupted: {told}")
    assert "Traceback" not in stderr


@pytest.mark.parametrize("words", [("--revision", ""), ("--revision=", "--dry-run"), ("--revision", " ")])
def test_an_empty_revision_is_not_the_default_branch(
    words: tuple[str, ...], hub: FakeHub, draft: Path
) -> None:
    done = push(hub, draft, NAME, *words)
    assert (done.returncode, done.stdout, hub.log) == (2, "", [])
    assert "it is empty" in done.stderr


def test_every_size_must_pass(hub: FakeHub, draft: Path) -> None:
    heads = json.loads((draft / "config.json").read_text())["num_attention_heads"]
    done = push(hub, draft, NAME, "--tp", f"1,{2 * heads}")
    assert (done.returncode, hub.log, last_line(done)) == (1, [], "dflash-audit: nothing was uploaded")
    assert push(hub, draft, NAME, "--tp", "1,2").returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_report_that_cannot_be_printed_uploads_nothing(hub: FakeHub, draft: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "dflash_audit", "push", str(draft), NAME],
            stdout=full,
            stderr=subprocess.PIPE,
            env={**os.environ, "HF_ENDPOINT": hub.url, "HF_TOKEN": "hf_right"},
            check=False,
        )
    assert (done.returncode, hub.log) == (3, [])


def test_a_draft_that_nobody_judged_stays_here(hub: FakeHub, draft: Path) -> None:
    config = json.loads((draft / "config.json").read_text())
    (draft / "config.json").write_text(json.dumps({**config, "architectures": ["Lfm2DSparkDraftModel"]}))
    done = push(hub, draft, NAME)
    assert (done.returncode, hub.writes()) == (3, [])
    assert done.stderr.splitlines()[-2:] == [
        f"dflash-audit: {draft}: not judged on sglang-next; --fail-on never uploads it all the same",
        "dflash-audit: nothing was uploaded",
    ]
    assert push(hub, draft, NAME, "--fail-on", "never").returncode == 0
    assert hub.repos[NAME]
