"""The job of the GitLab template, run by the shells that a runner may find in an image."""

import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from ci.manifests import template
from ci.steps import Step, checkout, run_step
from junitparser import JUnitXml
from test_cli import FIXTURES

SHELLS = {"bash": ["bash", "-e", "-o", "pipefail"], "sh": ["sh", "-e"]}
"""GitLab's runner takes bash where the image has one, else sh."""

INPUTS, JOB = template()
INSTALL, AUDIT = JOB["script"]


def variables(**inputs: str) -> dict[str, str]:
    """The job's variables with the inputs put in, as GitLab does: their text for the expression."""
    given = {name: str((each or {}).get("default", "")) for name, each in INPUTS.items()}
    given |= {name.replace("_", "-"): value for name, value in inputs.items()}
    return {
        name: re.sub(r"\$\[\[ inputs\.([\w-]+) \]\]", lambda found: given[found[1]], text)
        for name, text in JOB["variables"].items()
    }


def audit(workspace: Path, shell: str = "sh", **inputs: str) -> Step:
    """The second part of the script, with this environment's program for the one that the first installs."""
    venv = workspace.parent / "venv"
    (venv / "bin").mkdir(parents=True, exist_ok=True)
    program = venv / "bin" / "dflash-audit"
    program.write_text(
        f'#!/bin/sh\nPYTHONPATH={FIXTURES.parent} exec {sys.executable} -P -m dflash_audit "$@"\n'
    )
    program.chmod(0o755)
    environment = {**variables(**inputs), "venv": str(venv), "CI_PROJECT_DIR": str(workspace)}
    return run_step(SHELLS[shell], AUDIT, workspace, workspace.parent / "files", environment)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return checkout(tmp_path / "work space")


@pytest.mark.parametrize("shell", SHELLS)
def test_the_reports_that_it_leaves(shell: str, workspace: Path) -> None:
    done = audit(workspace, shell, source="drafts/bad")
    assert done.code == 1, done.log
    assert "does not serve" in done.log
    reports = JOB["artifacts"]["reports"]
    found = json.loads((workspace / reports["codequality"]).read_text())
    assert {each["location"]["path"].rpartition("/")[0] for each in found} == {"drafts/bad"}
    assert JUnitXml.fromfile(str(workspace / reports["junit"])).failures > 0
    assert JOB["artifacts"]["when"] == "always"


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("inputs", "code"),
    [
        ({"source": "drafts/good"}, 0),
        ({"source": "drafts/good", "engines": "sglang-next, sglang-0.5.23"}, 1),
        ({"source": "drafts/good", "fail_on": "warning"}, 1),
        ({"source": "drafts/good", "args": "--gpu=b200\n\n--ignore=dropped-tensor:a b\n"}, 0),
        ({"source": "drafts/good", "baseline": "none.json"}, 2),
        ({"source": "drafts/none"}, 3),
    ],
)
def test_the_inputs(inputs: dict[str, str], code: int, shell: str, workspace: Path) -> None:
    done = audit(workspace, shell, **inputs)
    assert done.code == code, done.log


@pytest.mark.parametrize("shell", SHELLS)
def test_a_value_is_a_value(shell: str, workspace: Path) -> None:
    values = (
        "$(touch touched)",
        "`touch touched`",
        "'; touch touched; '",
        "a\ntouch touched",
        "--output=touched",
        "*",
    )
    for value in values:
        others = dict.fromkeys(("engines", "baseline", "fail_on"), value)
        for inputs in ({"source": value}, {"source": "drafts/good", **others}):
            done = audit(workspace, shell, **inputs)
            assert done.code in (2, 3), (inputs, done.log)
            assert not (workspace / "touched").exists()
    shutil.copytree(workspace / "drafts" / "bad", workspace / "--fail-on=never")
    assert audit(workspace, shell, source="--fail-on=never").code == 1
    assert audit(workspace, shell, source="drafts/good", args="$(touch touched)\nEND_OF_ARGS").code == 2
    assert not (workspace / "touched").exists()


@pytest.mark.parametrize("shell", SHELLS)
def test_what_pip_is_given(shell: str, workspace: Path, tmp_path: Path) -> None:
    """The installation by itself: the same two commands are run for real in the action's."""
    stub = tmp_path / "stub"
    stub.mkdir()
    python = stub / "python3"
    python.write_text(
        "#!/bin/sh\n"
        '[ "$3" = venv ] && { mkdir -p "$4/bin"; cp "$0" "$4/bin/python"; }\n'
        'for word in "$@"; do printf "%s\\n" "$word" >> told; done\n'
    )
    python.chmod(0o755)
    environment = {**variables(package="$(touch touched) --pre"), "PATH": f"{stub}:{os.environ['PATH']}"}
    done = run_step(SHELLS[shell], INSTALL, workspace, tmp_path / "files", environment)
    assert done.code == 0, done.log
    told = (workspace / "told").read_text().splitlines()
    assert told[:3] == ["-I", "-m", "venv"]
    assert (told[4:7], told[-2:]) == (["-I", "-m", "pip"], ["--", "$(touch touched) --pre"])
    assert not (workspace / "touched").exists()
