"""A pull request held against its base, and the one comment on it."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from formats.reports import HOSTILE
from formats.test_inert import OWN_HTML, prone, tokens
from hub.drafts import config, layout, single, weights
from hub.fake_hub import Failure, FakeHub
from hub.test_command_line import run
from hub.test_fix_repo import without_window
from jsonschema import Draft202012Validator
from report_schema import valid
from test_cli import run as cli

from dflash_audit.engines import ENGINES
from dflash_audit.formats.schemas import SCHEMAS, schema

NAME = "org/draft"
MARKER = "<!-- dflash-audit pr top -->"


def pr(
    hub: FakeHub, tmp_path: Path, *words: str, token: str | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    env = {"HF_HOME": str(tmp_path / "home"), **({"HF_TOKEN": token} if token else {})}
    return run(hub, "pr", *words, cwd=None, **{**env, **environment})


def said(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """What it prints with --json, once it is what the schema says."""
    document: dict[str, Any] = json.loads(done.stdout)
    problems = Draft202012Validator(json.loads(schema("pr"))).iter_errors(document)
    assert [f"{problem.json_path}: {problem.message[:200]}" for problem in problems] == []
    assert document["exit_code"] == done.returncode
    for side in ("before", "after"):
        if document[side] is not None:
            valid(document[side])
    return document


def changes(document: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each["change"] for each in document["comparison"]["engines"]}


def rules(document: dict[str, Any], kind: str) -> set[str]:
    return {finding["rule"] for finding in document["comparison"]["findings"][kind]}


def test_the_schema_is_whole() -> None:
    for name in SCHEMAS:
        Draft202012Validator.check_schema(json.loads(schema(name)))
    assert json.loads(cli("schema", "pr").stdout) == json.loads(schema("pr"))
    wrong = cli("schema", "reprot")
    assert (wrong.returncode, "Did you mean report?" in wrong.stderr) == (2, True)


def test_worse(hub: FakeHub, tmp_path: Path) -> None:
    files = single(tmp_path)
    repo = hub.repo(NAME, files)
    repo.pull_request(without_window(files))
    done = pr(hub, tmp_path, NAME, "1")
    assert (done.returncode, done.stderr, hub.writes()) == (1, "", [])
    lines = done.stdout.splitlines()
    assert lines[:3] == [
        "org/draft, pull request 1",
        f"open; main, commit {repo.refs['main']}",
        f"refs/pr/1, commit {repo.refs['refs/pr/1']}",
    ]
    assert lines[4].split() == "sglang-next serves does not serve worse".split()
    assert "New" in lines
    assert lines[-1] == "exit code 1"
    document = said(pr(hub, tmp_path, NAME, "1", "--json"))
    assert changes(document) == dict.fromkeys(ENGINES, "worse")
    assert rules(document, "new") == {"refused-build", "unused-window"}
    assert document["before"]["source"]["commit"] == repo.refs["main"]
    assert document["after"]["source"]["commit"] == repo.refs["refs/pr/1"]
    assert document["pull_request"] == {"repo": NAME, "number": 1, "base": "main", "status": "open"}


def test_better_against_the_base_that_it_names(hub: FakeHub, tmp_path: Path) -> None:
    files = single(tmp_path)
    repo = hub.repo(NAME, files)
    repo.push(without_window(files), "v2")
    repo.pull_request(files, base="v2")
    document = said(pr(hub, tmp_path, f"hf://{NAME}", "1", "--json"))
    assert (document["exit_code"], document["pull_request"]["base"]) == (0, "v2")
    assert changes(document) == dict.fromkeys(ENGINES, "better")
    assert rules(document, "gone") == {"refused-build", "unused-window"}
    assert rules(document, "new") == set()


def test_what_stays_fails_unless_a_baseline_has_it(hub: FakeHub, tmp_path: Path) -> None:
    files = without_window(single(tmp_path))
    repo = hub.repo(NAME, files)
    repo.pull_request({**files, "README.md": b"more"})
    document = said(pr(hub, tmp_path, NAME, "1", "--json"))
    assert document["exit_code"] == 1
    assert set(changes(document).values()) == {"same"}
    assert rules(document, "stayed") == {"refused-build", "unused-window"}
    known = tmp_path / "main.json"
    home = str(tmp_path / "home")
    assert run(hub, NAME, "--write-baseline", str(known), HF_HOME=home).returncode == 0
    done = pr(hub, tmp_path, NAME, "1", "--baseline", str(known))
    # vLLM, which does not decide, refuses in other words, and refuses a stray tensor.
    assert (done.returncode, "As before: 2 errors, 1 warning" in done.stdout) == (0, True)
    strays = {**layout(), "stray.weight": ("BF16", [2])}
    repo.pull_request({**files, "config.json": config(), "model.safetensors": weights(strays, tmp_path)})
    document = said(pr(hub, tmp_path, NAME, "2", "--baseline", str(known), "--json"))
    assert (document["exit_code"], rules(document, "new")) == (1, {"dropped-tensor", "refused-load"})


def test_nothing_to_compare_with(hub: FakeHub, tmp_path: Path) -> None:
    hub.repo(NAME, {"README.md": b""}).pull_request(single(tmp_path))
    done = pr(hub, tmp_path, NAME, "1")
    assert (done.returncode, done.stderr) == (0, "")
    assert "open; main, not audited: org/draft: no config.json" in done.stdout
    document = said(pr(hub, tmp_path, NAME, "1", "--json"))
    assert (document["error"], document["before"]["error"]["kind"]) == (None, "no-config")
    assert set(changes(document).values()) == {"new"}


def test_a_folder_of_a_repo(hub: FakeHub, tmp_path: Path) -> None:
    files = single(tmp_path)
    inside = {f"dflash/{name}": content for name, content in files.items()}
    repo = hub.repo(NAME, {"README.md": b""})
    pull = repo.pull_request(inside)
    done = pr(hub, tmp_path, f"{NAME}:dflash/", "1", "--comment", token="hf_right")
    assert done.returncode == 0
    assert pull.comments[0].content.startswith("<!-- dflash-audit pr ")
    assert not pull.comments[0].content.startswith(MARKER)
    assert "`org/draft:dflash`" in pull.comments[0].content


def test_one_comment_that_is_updated(hub: FakeHub, tmp_path: Path) -> None:
    files = single(tmp_path)
    repo = hub.repo(NAME, files)
    pull = repo.pull_request(without_window(files))
    pull.say("someone", f"{MARKER}\n\nnot by the audit")
    pull.say("me", f"about {MARKER}")
    pull.say("me", f"{MARKER}\n\nhidden").hidden = True
    document = said(pr(hub, tmp_path, NAME, "1", "--comment", "--json", token="hf_right"))
    mine = pull.comments[3]
    assert (document["exit_code"], document["error"]) == (1, None)
    assert document["comment"] == {
        "action": "posted", "id": mine.id, "url": f"{hub.url}/org/draft/discussions/1#{mine.id}"
    }  # fmt: skip
    assert (mine.author, mine.content.splitlines()[:3]) == ("me", [MARKER, "", "## Pull request 1: worse"])
    printed = pr(hub, tmp_path, NAME, "1", "--format", "markdown")
    assert printed.stdout == f"{mine.content}\n"

    again = pr(hub, tmp_path, NAME, "1", "--comment", token="hf_right")
    assert again.stderr == f"dflash-audit: comment unchanged: {document['comment']['url']}\n"
    repo.push({**files, "README.md": b"mended"}, "refs/pr/1")
    done = pr(hub, tmp_path, NAME, "1", "--comment", token="hf_right")
    assert (done.returncode, done.stderr) == (
        0, f"dflash-audit: comment updated: {document['comment']['url']}\n"
    )  # fmt: skip
    assert (len(pull.comments), len(mine.history)) == (4, 1)
    assert "## Pull request 1: the verdict stays" in mine.content
    assert repo.refs["refs/pr/1"] in mine.content
    assert [comment.history for comment in pull.comments[:3]] == [[], [], []]

    # Another user's audit has a comment of its own.
    assert pr(hub, tmp_path, NAME, "1", "--comment", token="hf_reader").returncode == 0
    assert [comment.author for comment in pull.comments] == ["someone", "me", "me", "me", "reader"]


def test_what_the_pull_request_breaks_is_told_there(hub: FakeHub, tmp_path: Path) -> None:
    files = single(tmp_path)
    pull = hub.repo(NAME, files).pull_request({**files, "model.safetensors": b"no header"})
    done = pr(hub, tmp_path, NAME, "1", "--comment", token="hf_right")
    assert (done.returncode, len(done.stderr.splitlines())) == (3, 2)
    assert "not audited" in pull.comments[0].content
    assert "`org/draft/model.safetensors`" in pull.comments[0].content


def test_hostile_names_in_the_comment_are_inert(hub: FakeHub, tmp_path: Path) -> None:
    names = [name for name in HOSTILE if name not in ("\ud800", "")]
    strays = {**layout(), **{name: ("BF16", [2]) for name in names}}
    strays |= {f"layers.0.{name}.weight": ("BF16", [2]) for name in names}
    files = single(tmp_path)
    repo = hub.repo(NAME, files)
    pull = repo.pull_request({**files, "model.safetensors": weights(strays, tmp_path)})
    done = pr(hub, tmp_path, NAME, "1", "--comment", token="hf_right")
    assert done.returncode == 1
    text = pull.comments[0].content
    assert text.startswith(f"{MARKER}\n\n")
    assert "pwned" in text
    assert len(text) < 65_536
    found = tokens(text.removeprefix(MARKER))
    assert [bad for bad in prone(found) if not OWN_HTML.fullmatch(bad.strip())] == []
    assert all(line.isprintable() for line in text.split("\n"))
    for words in (["--format", "markdown"], ["--json"], []):
        lines = pr(hub, tmp_path, NAME, "1", *words).stdout.split("\n")
        assert all(line.isprintable() and not line.lstrip().startswith("::") for line in lines)


def test_a_long_comment_is_cut(hub: FakeHub, tmp_path: Path) -> None:
    strays = {**layout(), **{f"{'x' * 200}.{n}.stray.m{n}": ("BF16", [2]) for n in range(2_000)}}
    files = single(tmp_path)
    pull = hub.repo(NAME, files).pull_request({**files, "model.safetensors": weights(strays, tmp_path)})
    assert pr(hub, tmp_path, NAME, "1", "--comment", token="hf_right").returncode == 1
    assert len(pull.comments[0].content) < 65_536
    assert "and 1990 more" in pull.comments[0].content


@pytest.mark.parametrize(
    ("words", "token", "told"),
    [
        ([NAME, "7"], None, "{hub} answers 404: there is no such thing (Discussion not found)"),
        ([NAME, "2"], None, "a discussion, and no pull request"),
        (["org/none", "1"], None, "no such repo on {hub}, or a private one that needs another HF_TOKEN"),
        ([NAME, "1", "--comment"], None, "no token: set HF_TOKEN, or log in with `hf auth login`"),
        ([NAME, "1", "--comment"], "hf_wrong", "{hub} answers 401: set HF_TOKEN to a token that is valid"),
    ],
)
def test_what_cannot_be_done(
    hub: FakeHub, tmp_path: Path, words: list[str], token: str | None, told: str
) -> None:
    files = single(tmp_path)
    repo = hub.repo(NAME, files)
    repo.pull_request(files)
    repo.discuss(None)
    done = pr(hub, tmp_path, *words, token=token)
    reason = told.format(hub=hub.url)
    assert done.stderr == f"dflash-audit: {words[0]} pull request {words[1]}: {reason}\n"
    assert (done.returncode, hub.writes()) == (3, [])
    document = said(pr(hub, tmp_path, *words, "--json", token=token))
    assert document["error"]["message"].endswith(reason)
    assert (document["comparison"] is None) == ("--comment" not in words)


@pytest.mark.parametrize("status", [403, 409, 503])
def test_a_comment_that_is_refused(hub: FakeHub, tmp_path: Path, status: int) -> None:
    files = single(tmp_path)
    pull = hub.repo(NAME, files).pull_request(files)
    hub.failures.append(Failure(status, where="/comment"))
    done = pr(hub, tmp_path, NAME, "1", "--comment", token="hf_right")
    assert (done.returncode, pull.comments, len(done.stderr.splitlines())) == (3, [], 1)
    assert f"answers {status}" in done.stderr
    assert "exit code 3" in done.stdout


def test_no_network(hub: FakeHub, tmp_path: Path) -> None:
    hub.repo(NAME, {}).discuss("main")
    offline = pr(hub, tmp_path, NAME, "1", HF_HUB_OFFLINE="1")
    assert (offline.returncode, offline.stdout, hub.log) == (3, "", [])
    assert "HF_HUB_OFFLINE is set, and this needs the Hub" in offline.stderr
    dead = pr(hub, tmp_path, NAME, "1", "--json", HF_ENDPOINT="http://127.0.0.1:1")
    assert said(dead)["error"]["kind"] == "network"


def test_a_side_that_is_not_seen_is_told_nowhere_else(hub: FakeHub, tmp_path: Path) -> None:
    files = single(tmp_path)
    pull = hub.repo(NAME, files).pull_request(files)
    hub.failures.append(Failure(403, where="/resolve/", times=10))
    done = pr(hub, tmp_path, NAME, "1", "--comment", token="hf_right")
    assert (done.returncode, pull.comments) == (3, [])
    assert (done.stdout, done.stderr.count("answers 403")) == ("", 1)
    document = said(pr(hub, tmp_path, NAME, "1", "--json"))
    assert (document["comparison"], document["error"]["kind"]) == (None, "no-access")


def test_several_sizes_decide_together(hub: FakeHub, tmp_path: Path) -> None:
    files = single(tmp_path)
    hub.repo(NAME, files).pull_request(files)
    document = said(pr(hub, tmp_path, NAME, "1", "--tp", "1,2,64", "--json"))
    for side in ("before", "after"):
        (engine,) = (engine for engine in document[side]["engines"] if engine["gating"])
        assert [(each["tp"], each["verdict"]) for each in engine["verdicts"]][:2] == [
            (1, "pass"),
            (2, "pass"),
        ]
        assert engine["verdicts"][2]["verdict"] == "fail"
    assert document["exit_code"] == 1
    assert changes(document)["sglang-next"] == "same"


def test_a_target_that_is_called_like_the_draft_is_none_of_it(hub: FakeHub, tmp_path: Path) -> None:
    hub.repo(NAME, single(tmp_path)).pull_request(single(tmp_path))
    hub.repo(f"{NAME}-base", {"config.json": b"{"})
    done = pr(hub, tmp_path, NAME, "1", "--target", f"{NAME}-base", "--comment", "--json", token="hf_right")
    document = said(done)
    assert (document["exit_code"], document["error"]["kind"], document["after"]) == (3, "bad-config", None)
    assert hub.repos[NAME].discussions[1].comments == []
    listings = [path for path in hub.paths() if path.startswith(f"/api/models/{NAME}-base")]
    assert len(listings) == 1


def test_a_target_that_is_not_there_is_no_matter_of_the_pull_request(hub: FakeHub, tmp_path: Path) -> None:
    files = single(tmp_path)
    pull = hub.repo(NAME, files).pull_request(files)
    done = pr(hub, tmp_path, NAME, "1", "--target", "./nothing", "--comment", token="hf_right")
    assert (done.returncode, done.stdout, pull.comments) == (3, "", [])
    assert done.stderr == "dflash-audit: ./nothing: no such folder\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["draft", "1"], "draft is no repo of the Hub"),
        (["org/draft@v1", "1"], "org/draft@v1 is no repo of the Hub"),
        (["org/draft", "0"], "NUMBER"),
        (["org/draft", "one"], "NUMBER"),
        (["org/draft", "1", "--format", "html"], "html is no format of a review"),
    ],
)
def test_usage(hub: FakeHub, words: list[str], told: str) -> None:
    done = run(hub, "pr", *words)
    assert (done.returncode, done.stdout, hub.log) == (2, "", [])
    assert told in done.stderr
