"""A repair of a draft in a repo of the Hub: proposed, and never written."""

import json
from pathlib import Path

from hub.drafts import config, single
from hub.fake_hub import FakeHub
from hub.test_command_line import run

NAME = "org/draft"


def without_window(files: dict[str, bytes]) -> dict[str, bytes]:
    """The draft's files, with a config that forgot `use_sliding_window`."""
    text = config().decode().replace(' "use_sliding_window": true,\n', "")
    assert text != config().decode()
    return {**files, "config.json": text.encode()}


def test_the_diff_of_a_repo(hub: FakeHub, tmp_path: Path) -> None:
    hub.repo(NAME, without_window(single(tmp_path)))
    home = tmp_path / "home"
    done = run(hub, "fix", NAME, HF_HOME=str(home))
    assert (done.returncode, done.stderr) == (0, "")
    assert '+ "use_sliding_window": true' in done.stdout.splitlines()
    assert "No repo is written to" in done.stdout
    said = json.loads(run(hub, "fix", NAME, "--json", HF_HOME=str(home)).stdout)
    assert (said["source"]["kind"], said["outcome"]) == ("hub", "mended")
    assert len(said["source"]["commit"]) == 40
    assert not list(home.rglob("config.json"))


def test_a_repo_is_not_written_to(hub: FakeHub, tmp_path: Path) -> None:
    hub.repo(NAME, without_window(single(tmp_path)))
    done = run(hub, "fix", NAME, "--write", HF_HOME=str(tmp_path / "home"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "no --write" in done.stderr
    assert hub.log == []
