"""The program on a repo, with the environment that users of huggingface_hub know."""

import json
import os
import subprocess
import sys
from pathlib import Path

from hub.drafts import sharded, single
from hub.fake_hub import FakeHub

NAME = "org/draft"


def run(
    hub: FakeHub, *words: str, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    fixed = {
        "HF_ENDPOINT": hub.url,
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "NO_COLOR": "1",
        "no_proxy": "*",
        "PATH": os.environ["PATH"],
    }
    command = [sys.executable, "-m", "dflash_audit", *words]
    env = {**fixed, **environment}
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=env, check=False)


def test_endpoint_token_and_cache(hub: FakeHub, tmp_path: Path) -> None:
    home = tmp_path / "home"
    repo = hub.repo(NAME, sharded(2, tmp_path))
    repo.private = True
    refused = run(hub, NAME, HF_HOME=str(home))
    assert (refused.returncode, refused.stdout) == (3, "")
    assert refused.stderr == (
        f"dflash-audit: {NAME}: no such repo on {hub.url}, or a private one that needs another HF_TOKEN;"
        " nor is there such a path here\n"
    )
    done = run(hub, NAME, "--json", HF_HOME=str(home), HF_TOKEN=hub.token)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["source"]["commit"] == repo.refs["main"]
    assert not (home / "hub").exists()
    offline = run(hub, NAME, "--json", HF_HOME=str(home), HF_HUB_OFFLINE="1")
    assert offline.returncode == 3
    assert json.loads(offline.stdout)["error"]["kind"] == "not-cached"


def test_the_text_names_the_commit_and_the_bytes(hub: FakeHub, tmp_path: Path) -> None:
    repo = hub.repo(NAME, single(tmp_path))
    repo.push({**single(tmp_path), "README.md": b""}, "refs/pr/1")
    done = run(hub, NAME, "--revision", "refs/pr/1", HF_HOME=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    name, what, commit, *_ = done.stdout.splitlines()
    assert name == NAME
    assert what.endswith("(66.4 kB read of 915.8 kB)")
    assert commit == f"commit {repo.refs['refs/pr/1']}"


def test_the_tree_of_a_revision(hub: FakeHub, tmp_path: Path) -> None:
    hub.repo(NAME).push(single(tmp_path), "v1")
    done = run(hub, "tree", f"hf://{NAME}", "--revision", "v1", HF_HOME=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert "layers.0.self_attn.qkv_proj" in done.stdout


def test_a_mistyped_path_and_a_repo_beside_a_folder_of_that_name(hub: FakeHub, tmp_path: Path) -> None:
    (tmp_path / "org" / "draft-a").mkdir(parents=True)
    missing = f"no such repo on {hub.url}, or a private one that needs another HF_TOKEN"
    typed = {
        "org/draft-z": f"org/draft-z: the folder org is here and holds no draft-z; as a repo: {missing}",
        "other/draft": f"other/draft: {missing}; nor is there such a path here",
        "hf://org/draft-z": f"org/draft-z: {missing}",
        "org/draft-z@v1": f"org/draft-z: {missing}",
    }
    for source, message in typed.items():
        done = run(hub, source, cwd=tmp_path, HF_HOME=str(tmp_path))
        assert (done.returncode, done.stderr) == (3, f"dflash-audit: {message}\n")
    hub.repo(NAME, single(tmp_path))
    assert run(hub, NAME, cwd=tmp_path, HF_HOME=str(tmp_path)).returncode == 0


def test_a_repo_with_drafts_in_folders(hub: FakeHub, tmp_path: Path) -> None:
    files = {f"dflash/{name}": content for name, content in single(tmp_path).items()}
    hub.repo(NAME, {**files, "README.md": b"", "docs/x.md": b""})
    done = run(hub, NAME, HF_HOME=str(tmp_path))
    assert done.returncode == 3
    assert done.stderr == (
        f"dflash-audit: {NAME}: no config.json: name a folder in it that has one (dflash/)\n"
    )
    assert run(hub, f"{NAME}:dflash/", HF_HOME=str(tmp_path)).returncode == 0
