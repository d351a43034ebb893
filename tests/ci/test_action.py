"""The action's steps, run by the shell that GitHub runs them by, on a checkout that means no good."""

import json
import re
import shutil
from pathlib import Path

import pytest
from ci.manifests import ROOT, action
from ci.steps import Step, checkout, run_step

BASH = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail"]
"""What `shell: bash` stands for. Source: GitHub's "Workflow syntax", `jobs.<job_id>.steps[*].shell`."""

INSTALL, AUDIT = action()["runs"]["steps"]

HOSTILE = (
    "$(touch touched)",
    "`touch touched`",
    "'; touch touched; '",
    '"; touch touched; "',
    "a\ntouch touched",
    "\n::error::x",
    "--output=touched",
    "-otouched",
    "--help",
    "*",
    "${IFS}",
)


def step(which: dict[str, object], workspace: Path, runner: Path, **inputs: str) -> Step:
    """A step with the inputs of a workflow put in, as GitHub does: their text for the expression."""
    given = {name: str(each.get("default", "")) for name, each in action()["inputs"].items()} | {
        name.replace("_", "-"): value for name, value in inputs.items()
    }
    env = which["env"]
    assert isinstance(env, dict)
    environment = {
        name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: given[found[1]], text)
        for name, text in env.items()
    }
    github = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_ACTION_PATH": str(ROOT),
        "GITHUB_WORKSPACE": str(workspace),
        "RUNNER_TEMP": str(runner),
    }
    return run_step(BASH, str(which["run"]), workspace, runner.parent / "files", environment | github)


@pytest.fixture(scope="session")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A runner's own folder, after the first step: installed by pip from this checkout."""
    base = tmp_path_factory.mktemp("action run")
    workspace = checkout(base / "install")
    (base / "temp dir").mkdir()
    done = step(INSTALL, workspace, base / "temp dir")
    assert done.code == 0, done.log
    assert not (workspace / "imported").exists()
    return base / "temp dir"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return checkout(tmp_path / "work space")


def test_an_old_python_is_told(workspace: Path, tmp_path: Path) -> None:
    old = tmp_path / "old python"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    (tmp_path / "temp").mkdir()
    for python in (str(old), "no-such-python", "$(touch touched)"):
        done = step(INSTALL, workspace, tmp_path / "temp", python=python)
        assert done.code == 2
        assert "::error title=dflash-audit::needs Python 3.11" in done.log
    assert not (workspace / "touched").exists()


def test_a_good_draft_passes(runner: Path, workspace: Path) -> None:
    done = step(AUDIT, workspace, runner, source="drafts/good")
    assert (done.code, done.output) == (0, "exit-code=0\n"), done.log
    assert "## DFlash draft audit" in done.summary
    assert ",file=drafts/good/config.json::" in done.log
    assert not (workspace / "imported").exists()


def test_a_bad_draft_fails_the_step_and_writes_the_summary(runner: Path, workspace: Path) -> None:
    done = step(AUDIT, workspace, runner, source="drafts/bad", sarif="out.sarif")
    assert (done.code, done.output) == (1, "exit-code=1\n")
    assert re.search(r"^::error title=.*,file=drafts/bad/", done.log, re.MULTILINE)
    assert "does not serve" in done.summary
    (run,) = json.loads((workspace / "out.sarif").read_text())["runs"]
    assert "error" in {result["level"] for result in run["results"]}


@pytest.mark.parametrize(
    ("inputs", "code"),
    [
        ({"source": "drafts/good", "engines": "all"}, 1),
        ({"source": "drafts/good", "engines": "sglang-next"}, 0),
        ({"source": "drafts/good", "engines": "sglang-next, sglang-0.5.23"}, 1),
        ({"source": "drafts/good", "engines": "sglang-next\r\nsglang-0.5.23\n"}, 1),
        ({"source": "drafts/good", "fail_on": "warning"}, 1),
        ({"source": "drafts/bad", "fail_on": "never"}, 0),
        ({"source": "drafts/good", "args": "--gpu=b200\n--strict\n"}, 0),
        ({"source": "drafts/good", "args": "--engine=all\n\n--ignore=dropped-tensor:a b"}, 1),
        ({"source": "drafts/none"}, 3),
        ({"source": "drafts/good", "engines": "sglang-nxt"}, 2),
        ({"source": "drafts/good", "baseline": "none.json"}, 2),
        ({"source": "drafts/good", "sarif": "no/such/folder.sarif"}, 3),
    ],
)
def test_the_inputs(inputs: dict[str, str], code: int, runner: Path, workspace: Path) -> None:
    done = step(AUDIT, workspace, runner, **inputs)
    assert (done.code, done.output) == (code, f"exit-code={code}\n"), done.log


@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        ({"engines": "sglang-nxt"}, "Error: Invalid value for '--engine': sglang-nxt is no engine."),
        (
            {"fail_on": "100%0A::warning::x"},
            "Error: Invalid value for '--fail-on': 100%250a::warning::x is no",
        ),
        ({"args": "--no-such-option"}, "Error: No such option: --no-such-option"),
        ({"baseline": "none.json"}, "none.json: cannot be read"),
    ],
)
def test_wrong_inputs_are_annotated_once(
    inputs: dict[str, str], told: str, runner: Path, workspace: Path
) -> None:
    done = step(AUDIT, workspace, runner, source="drafts/good", **inputs)
    (line,) = [line for line in done.log.splitlines() if line.startswith("::")]
    assert line.startswith("::error title=dflash-audit::Error: ")
    assert told in line
    assert done.code == 2


def test_what_cannot_be_read_is_annotated_once(runner: Path, workspace: Path) -> None:
    done = step(AUDIT, workspace, runner, source="drafts/none")
    assert (done.code, len(re.findall("^::error", done.log, re.MULTILINE))) == (3, 1)


def test_a_baseline(runner: Path, workspace: Path) -> None:
    written = step(AUDIT, workspace, runner, source="drafts/bad", args="--write-baseline=known.json")
    assert written.code == 0
    assert step(AUDIT, workspace, runner, source="drafts/bad", baseline="known.json").code == 0


@pytest.mark.parametrize("value", HOSTILE)
def test_a_value_is_a_value(value: str, runner: Path, workspace: Path) -> None:
    before = {*workspace.rglob("*")}
    others = dict.fromkeys(("engines", "fail_on", "baseline"), value) | {"args": f"--tp={value}"}
    for inputs in ({"source": value}, {"source": "drafts/good", **others}):
        done = step(AUDIT, workspace, runner, **inputs)
        assert done.code in (2, 3), (inputs, done.log)
        assert done.output == f"exit-code={done.code}\n"
        assert not re.search(r"^::error::x", done.log, re.MULTILINE)
    assert {*workspace.rglob("*")} == before


def test_no_source(runner: Path, workspace: Path) -> None:
    assert step(AUDIT, workspace, runner, source="").code == 3


def test_a_folder_that_is_called_like_an_option(runner: Path, workspace: Path) -> None:
    for name in ("--fail-on=never", "$(touch touched)", "'\"", "a\nb", "-"):
        shutil.copytree(workspace / "drafts" / "bad", workspace / name)
        done = step(AUDIT, workspace, runner, source=name)
        assert done.code == 1, (name, done.log)
    assert not (workspace / "touched").exists()
