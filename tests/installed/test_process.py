"""The child process: what it answers, how its end is told, and that it outlives nobody."""

import os
import signal
import subprocess
import sys
import time
from importlib import invalidate_caches
from pathlib import Path

import pytest

from dflash_audit.engines import LIVE
from dflash_audit.engines.installed.packages import PACKAGES, Package
from dflash_audit.engines.installed.process import Process
from dflash_audit.errors import Unreadable

FAKE = Path(__file__).parent / "fake"
ROOT = Path(__file__).parents[2]
PACKAGE = Package("other@installed", "other", "Other", "fake_child")


@pytest.fixture(autouse=True)
def fake_child(monkeypatch: pytest.MonkeyPatch) -> None:
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
    with Process(PACKAGE, 90) as child:
        assert child.version == "9.9.9"
        for folder in ("/a", "/b"):
            job = {"folder": folder, "quantization": "fp8", "attention_backend": None}
            assert child.ask(job) == {"job": job}
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
    with pytest.raises(Unreadable) as raised, Process(PACKAGE, 90, start, longest_job=2.0) as child:
        child.ask({"folder": "/a"})
    assert raised.value.kind == "engine-failed"
    assert said in raised.value.message
    assert raised.value.message.startswith("other@installed: ")
    assert "\n" not in raised.value.message


def test_a_module_in_the_current_folder_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fake_child.py").write_text("raise SystemExit(9)")
    monkeypatch.chdir(tmp_path)
    with Process(PACKAGE, 90) as child:
        assert child.version == "9.9.9"


def test_nor_is_one_run_by_a_python_that_the_child_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """vLLM looks at a model's class in a process of its own."""
    (tmp_path / "json.py").write_text("raise SystemExit(9)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AT_JOB", "start")
    with Process(PACKAGE, 90) as child:
        assert child.ask({"folder": "/a"})["ended"] == 0


def test_an_answer_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AT_JOB", "flood")
    with pytest.raises(Unreadable) as raised, Process(PACKAGE, 90, longest_answer=1 << 20) as child:
        child.ask({"folder": "/a"})
    assert raised.value.message == "other@installed: its answer is longer than 1048576 bytes"


def test_of_a_long_last_line_only_the_beginning_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AT_JOB", "shout")
    with pytest.raises(Unreadable) as raised, Process(PACKAGE, 90) as child:
        child.ask({"folder": "/a"})
    assert len(raised.value.message) < 1000
    assert "\x1b" not in raised.value.message


def test_every_live_engine_has_a_package() -> None:
    assert {*PACKAGES} == {*LIVE}


@pytest.mark.parametrize("engine", PACKAGES)
def test_what_is_not_installed_has_no_version(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    package = PACKAGES[engine]
    monkeypatch.setattr("dflash_audit.engines.installed.packages.find_spec", lambda name: None)
    assert package.installed_version() is None
    assert package.how_to_install.endswith(f"(pip install {package.module})")


def test_a_folder_of_that_name_is_no_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    assert PACKAGE.installed_version() is None
    (tmp_path / "other" / "__init__.py").write_text("")
    invalidate_caches()
    assert PACKAGE.installed_version() == "unknown"


@pytest.mark.parametrize("at_job", ["", "hang"])
def test_it_ends_with_its_parent(monkeypatch: pytest.MonkeyPatch, at_job: str) -> None:
    monkeypatch.setenv("AT_JOB", at_job)
    program = (
        "import time\n"
        "from dflash_audit.engines.installed.packages import Package\n"
        "from dflash_audit.engines.installed.process import Process\n"
        "child = Process(Package('other@installed', 'other', 'Other', 'fake_child'), 90)\n"
        "print(child._child.pid, flush=True)\n"
        f"{'child.ask(dict())' if at_job else 'time.sleep(600)'}\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    with parent.stdout:
        pid = int(parent.stdout.readline())
        assert alive(pid)
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    assert gone(pid)
