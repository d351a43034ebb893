"""However a child ends, the parent goes on, says of what it died, and leaves nothing running."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from warmup.jobs import job, warm_up
from warmup.processes import all_gone, running

from dflash_audit.loadplan import LoadPlan
from dflash_audit.warmup.ending import death
from dflash_audit.warmup.events import AGAINST, START, Failure, Heard
from dflash_audit.warmup.result import Death, Stage, WarmUp
from dflash_audit.warmup.stderr_tail import StderrTail

STAGES = (START, "weights", "fc", "hidden")
PLENTY = 60


def died(what: str, stage: str = "hidden", timeout: int = PLENTY) -> Death:
    death = warm_up(job(what, stage), timeout).death
    assert death is not None
    return death


def pids(text: str) -> list[int]:
    """The processes that a child named for its last stage."""
    word, *numbers = text.split()
    assert word == "pids"
    return [int(number) for number in numbers]


def test_a_result() -> None:
    said = warm_up(job("pass_"), PLENTY)
    stage = Stage("fc", 0.5, 0.0, 3.5)
    assert said == WarmUp("an-engine", "reference", "cpu", "bfloat16", (stage,), peak_bytes=17)
    assert said.verdict == "pass"


def test_noise_spoils_nothing() -> None:
    assert warm_up(job("noise"), PLENTY) == warm_up(job("pass_"), PLENTY)


def test_a_job_larger_than_any_pipe() -> None:
    large = replace(job("pass_"), plan=LoadPlan({}, {}, ("x" * 2**22,)))  # type: ignore[arg-type]
    assert warm_up(large, PLENTY).verdict == "pass"


def test_what_the_child_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pickle.py").write_text("raise SystemExit('a file of the checkpoint was run')")
    blocking, leads_a_session, first = (warm_up(job("environment"), PLENTY).skipped or "").split(" ", 2)
    assert (blocking, leads_a_session) == ("1", "True")
    assert str(tmp_path) not in first


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(
    ("what", "kind", "detail"),
    [
        ("segfault", "crash", "SIGSEGV in __init__.py:"),
        ("abort", "crash", "SIGABRT in children.py:"),
        ("bus", "crash", "SIGBUS in children.py:"),
        ("device_assert", "assert", "`srcIndex < srcSelectDimSize` in indexSelectSmallIndex (Indexing.cu"),
        ("device_assert_that_aborts", "assert", "`srcIndex < srcSelectDimSize` in Indexing.cu:1553"),
        ("device_assert_unexplained", "assert", "AcceleratorError: CUDA error: device-side assert triggered"),
        ("shapes", "error", "RuntimeError: mat1 and mat2 shapes cannot be multiplied"),
        ("out_of_range", "error", "IndexError: index out of range in self (child.py:"),
        ("refused", "error", "Refused: the size does not fit the kernel (child.py:"),
    ],
)  # fmt: skip
def test_deaths_by_the_draft(what: str, kind: str, detail: str, stage: str) -> None:
    said = warm_up(job(what, stage), PLENTY)
    assert said.death is not None
    assert (said.death.kind, said.death.stage) == (kind, stage)
    assert said.death.detail.startswith(detail)
    # What dies before the first stage is no draft's doing.
    assert said.death.by_draft == (stage != START)
    assert said.verdict == ("skipped" if stage == START else "fail")


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(
    ("what", "kind", "detail"),
    [
        ("kill", "killed", "SIGKILL, which the system sends where memory runs out"),
        ("terminate", "killed", "SIGTERM"),
        ("memory_error", "out-of-memory", "MemoryError:"),
        ("cuda_out_of_memory", "out-of-memory", "OutOfMemoryError: CUDA out of memory. Tried"),
        ("cpu_out_of_memory", "out-of-memory", "RuntimeError: [enforce fail at alloc_cpu.cpp:129]"),
        ("bad_alloc", "out-of-memory", "what():  CUDA out of memory."),
        ("no_device", "no-device", "RuntimeError: Found no NVIDIA driver on your system."),
        ("vanished", "no-device", "AcceleratorError: CUDA error: no CUDA-capable device is detected"),
        ("bug", "error", "KeyError: 'no such layer\\nin there' (child.py:"),
        ("leave", "error", "it ended with exit code 3 and no result, and last said: giving up"),
        ("leave_in_peace", "error", "it ended with exit code 0 and no result"),
    ],
)
def test_deaths_by_the_machine(what: str, kind: str, detail: str, stage: str) -> None:
    said = warm_up(job(what, stage), PLENTY)
    assert said.death is not None
    assert (said.death.kind, said.death.stage, said.death.by_draft) == (kind, stage, False)
    assert said.death.detail.startswith(detail)
    assert said.death.detail.isprintable()
    assert said.verdict == "skipped"


@pytest.mark.parametrize(("stage", "by_draft"), [("fc", True), (AGAINST, False), (START, False)])
def test_what_another_draft_dies_of_is_not_this_ones_doing(stage: str, by_draft: bool) -> None:
    heard = Heard(stage=stage, failure=Failure("RuntimeError", "shapes cannot be multiplied", "linear.py:7"))
    assert death(heard, StderrTail(), 1).by_draft == by_draft


def test_what_cannot_be_run_is_a_skip() -> None:
    said = warm_up(job("not_modelled"), PLENTY)
    assert (said.skipped, said.verdict) == ("this scheme is not unpacked here", "skipped")


def test_where_a_child_ran_that_died() -> None:
    said = warm_up(job("die_on_a_card"), PLENTY)
    assert (said.backend, said.device, said.dtype) == ("reference", "cuda:1", "bfloat16")
    said = warm_up(job("segfault"), PLENTY)
    assert (said.backend, said.device, said.dtype) == ("auto", "auto", "bfloat16")


def test_a_child_that_cannot_start() -> None:
    said = warm_up(job("pass_"), PLENTY, module="warmup.no_such_module")
    assert said.death is not None
    assert said.death.stage == START
    assert "No module named warmup.no_such_module" in said.death.detail
    assert said.verdict == "skipped"


@pytest.mark.parametrize("what", ["hang", "hang_in_native_code"])
def test_a_hang_ends_with_all_that_the_child_started(what: str) -> None:
    begin = time.monotonic()
    death = died(what, timeout=2)
    assert time.monotonic() - begin < 10
    assert (death.kind, death.detail, death.by_draft) == ("timeout", "not done after 2 s", True)
    assert all_gone(pids(death.stage))


def test_a_hang_before_the_first_stage() -> None:
    said = warm_up(job("hang_silently", START), 1)
    assert said.death == Death("timeout", START, "not done after 1 s", by_draft=False)


@pytest.mark.parametrize("what", ["hang_after_the_result", "leave_a_helper"])
def test_a_result_counts_and_nothing_outlives_it(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dflash_audit.warmup.isolation.GRACE", 0.5)
    said = warm_up(job(what), PLENTY)
    assert said.skipped is not None
    assert all_gone(pids(said.skipped))


def test_a_child_that_says_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dflash_audit.warmup.isolation.GRACE", 0.5)
    death = died("closed_events")
    assert death.kind == "killed"
    assert all_gone(pids(death.stage))


PARENT = """
import sys
from warmup.jobs import job, warm_up
from dflash_audit.warmup.events import Heard
heard = Heard.line
def line(self, line):
    heard(self, line)
    if self.stage.startswith("pids"):
        print(self.stage, flush=True)
Heard.line = line
warm_up(job(sys.argv[1]), 60)
"""


@pytest.mark.parametrize("what", ["hang", "hang_in_native_code"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_child_ends_with_its_parent(what: str, number: signal.Signals) -> None:
    command = [sys.executable, "-c", PARENT, what]
    path = os.pathsep.join(filter(None, sys.path))
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path}
    ) as parent:
        assert parent.stdout is not None
        left = pids(parent.stdout.readline().decode())
        assert all(running(pid) for pid in left)
        parent.send_signal(number)
        assert parent.wait(10) == -number
    assert all_gone(left)
