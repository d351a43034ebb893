"""The child process: what it answers, how its end is told, and that it outlives nobody."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dflash_audit.engines.sglang_installed import process
from dflash_audit.engines.sglang_installed.process import Job, Process
from dflash_audit.errors import Unreadable

FAKE = Path(__file__).parent / "fake"
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def fake_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "CHILD", "fake_child")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(FAKE), str(ROOT))))


def alive(pid: int) -> bool:
    """Whether a process runs; one that is dead and not waited for does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def gone(pid: int) -> bool:
    deadline = time.monotonic() + 20
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not alive(pid)


def test_it_answers_job_after_job() -> None:
    with Process(90) as child:
        assert child.version == "9.9.9"
        for folder in ("/a", "/b"):
            told = child.ask(Job(folder, "fp8"))
            assert told == {"job": {"folder": folder, "quantization": "fp8", "attention_backend": None}}
        pid = child._child.pid
    assert gone(pid)


@pytest.mark.parametrize("when", ["AT_START", "AT_JOB"])
@pytest.mark.parametrize(
    ("does", "said"),
    [
        ("crash", "ended by SIGSEGV"),
        ("exit", "ended with code 7"),
        ("exit", "(out of luck)"),
        ("hang", "no answer within 2 s"),
        ("fail", "it has no gcc"),
    ],
)
def test_its_failure_is_a_line(monkeypatch: pytest.MonkeyPatch, when: str, does: str, said: str) -> None:
    monkeypatch.setenv(when, does)
    start = 2.0 if (when, does) == ("AT_START", "hang") else 60.0
    with pytest.raises(Unreadable) as raised, Process(90, start, longest_job=2.0) as child:
        child.ask(Job("/a"))
    assert raised.value.kind == "engine-failed"
    assert said in raised.value.message
    assert raised.value.message.startswith("sglang@installed: ")
    assert "\n" not in raised.value.message


def test_a_module_in_the_current_folder_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fake_child.py").write_text("raise SystemExit(9)")
    monkeypatch.chdir(tmp_path)
    with Process(90) as child:
        assert child.version == "9.9.9"


@pytest.mark.parametrize("at_job", ["", "hang"])
def test_it_ends_with_its_parent(monkeypatch: pytest.MonkeyPatch, at_job: str) -> None:
    monkeypatch.setenv("AT_JOB", at_job)
    program = (
        "import time\n"
        "from dflash_audit.engines.sglang_installed import process\n"
        "process.CHILD = 'fake_child'\n"
        "child = process.Process(90)\n"
        "print(child._child.pid, flush=True)\n"
        f"{'child.ask(process.Job(str()))' if at_job else 'time.sleep(600)'}\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    with parent.stdout:
        pid = int(parent.stdout.readline())
        assert alive(pid)
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    assert gone(pid)
