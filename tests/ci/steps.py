"""A step of a CI system, run without it: its shell, its environment, its files."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from materialize import materialize
from test_cli import FIXTURES, SEED


@dataclass(frozen=True)
class Step:
    """What a step left: its exit code, its log, and what is in the files that GitHub named to it."""

    code: int
    log: str
    output: str
    summary: str


OURS = ("CI_", "DFLASH_AUDIT_", "GITHUB_", "GITLAB_", "PYTHON", "RUNNER_")
"""What the environment of these tests may have, and a step would find its own of."""

FILES = ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE")


def checkout(where: Path) -> Path:
    """A workspace with a draft that is served, one that is not, and things to trip over."""
    shutil.copytree(SEED, where / "drafts" / "good")
    materialize(FIXTURES / "cases" / "conv-keys-lost", where / "drafts" / "bad")
    for name in ("pip", "venv", "dflash_audit", "typer", "sitecustomize"):
        (where / f"{name}.py").write_text(f"open({str(where / 'imported')!r}, 'w')\n")
    return where


def run_step(
    shell: list[str], script: str, workspace: Path, scratch: Path, environment: dict[str, str]
) -> Step:
    """Run `script` as a runner does: from a file, in the workspace, with fresh files for what it tells."""
    scratch.mkdir(parents=True, exist_ok=True)
    files = {name: scratch / name for name in FILES}
    for file in files.values():
        file.write_text("")
    program = scratch / "step.sh"
    program.write_text(script)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    done = subprocess.run(
        [*shell, str(program)],
        cwd=workspace, capture_output=True, text=True, check=False,
        env={**inherited, **{n: str(f) for n, f in files.items()}, **environment},
    )  # fmt: skip
    told = [files[name].read_text() for name in FILES]
    assert told[2:] == ["", "", ""]
    return Step(done.returncode, done.stdout + done.stderr, told[0], told[1])
