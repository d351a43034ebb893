"""What becomes of the program where its stdout takes nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_cli import FIXTURES, SEED

from dflash_audit.sink import sink

FULL = Path("/dev/full")
COMMANDS = (
    (str(SEED),),
    (str(SEED), "--json"),
    ("tree", str(SEED)),
    ("fix", str(FIXTURES / "seed-bf16")),
    ("rules",),
    ("explain", "dropped-tensor"),
    ("schema",),
    ("diff", str(SEED), str(SEED)),
    ("sweep", str(SEED), "--format", "table"),
    ("--version",),
)


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", (*COMMANDS, ("--help",), ("sweep", "--help")), ids=" ".join)
def test_full_is_a_line_and_exit_code_3(words: tuple[str, ...]) -> None:
    with FULL.open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "dflash_audit", *words],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (3, f"dflash-audit: stdout: {os.strerror(28)}\n")


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_closed_leaves_the_exit_code(words: tuple[str, ...]) -> None:
    command = f'exec "{sys.executable}" -m dflash_audit "$@" >&-'
    done = subprocess.run(
        ["bash", "-c", command, "bash", *words], stderr=subprocess.PIPE, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_what_takes_nothing_more_keeps_no_handle(tmp_path: Path) -> None:
    with (tmp_path / "out").open("w") as stream:
        before = os.listdir("/proc/self/fd")
        sink(stream)
        assert os.listdir("/proc/self/fd") == before
        stream.write("more")
    assert (tmp_path / "out").read_text() == ""
