"""What the end of a child says of the draft: the draft's own forward, or the machine.

The order matters: an assert on the device ends the process in one of several
ways, and what it wrote to standard error tells it apart from all others.
"""

import re
import signal
from typing import Final

from dflash_audit.errors import Unreadable
from dflash_audit.printable import printable
from dflash_audit.warmup.events import AGAINST, START, Failure, Heard
from dflash_audit.warmup.result import Death, Kind
from dflash_audit.warmup.stderr_tail import StderrTail

LONGEST: Final = 300
"""Characters of a detail; a C++ exception goes on with advice and a stack."""

CRASHES: Final = frozenset(getattr(signal, f"SIG{name}") for name in "SEGV ABRT BUS FPE ILL SYS TRAP".split())
"""Signals that a process brings on itself."""

OUT_OF_MEMORY: Final = re.compile(
    r"out of memory|can't allocate memory|cannot allocate memory|not enough memory: you tried to allocate"
    r"|CUBLAS_STATUS_ALLOC_FAILED|CUDNN_STATUS_ALLOC_FAILED",
    re.IGNORECASE,
)
"""Source: PyTorch 2.13 `c10/cuda/CUDACachingAllocator.cpp` and `c10/core/impl/alloc_cpu.cpp`; the status
names of cuBLAS and cuDNN; `cudaGetErrorString` of CUDA 13 for cudaErrorMemoryAllocation."""

MEMORY_TYPES: Final = frozenset(("MemoryError", "OutOfMemoryError"))

NO_DEVICE: Final = re.compile(
    r"no CUDA GPUs are available|Found no NVIDIA driver|not compiled with CUDA enabled"
    r"|no CUDA-capable device|invalid device ordinal|Invalid device id|busy or unavailable"
    r"|driver version is insufficient|driver on your system is too old|system not yet initialized"
    r"|uncorrectable (?:ECC|NVLink) error|GPU is lost|fallen off the bus|device not ready"
    r"|no kernel image is available",
    re.IGNORECASE,
)
"""What PyTorch 2.13 (`torch/cuda/__init__.py`, `c10/cuda/CUDAFunctions.cpp`) and `cudaGetErrorString` of
CUDA 13 say where there is no card, none that this build runs on, or where it went away in the run."""

DEVICE_ASSERT: Final = "device-side assert"

OF_THE_DRAFT: Final = frozenset(("RuntimeError", "IndexError", "AcceleratorError", "Refused"))
"""Exceptions for what is given to an operation of PyTorch (shapes, indices), and an engine's own refusal."""


Cause = tuple[Kind, str, bool]
"""The kind of a death, its detail, and whether the draft's own forward did it."""


def death(heard: Heard, stderr: StderrTail, exit_code: int, timeout: int | None = None) -> Death:
    """How a child died that gave no result. `timeout` are its seconds where they ran out.

    `exit_code` is as `subprocess` gives it: minus the signal that ended it.
    """
    kind, detail, by_draft = _cause(heard.failure, stderr, exit_code, timeout)
    # Before the first stage nothing of the draft has run, and in one it is another draft that runs.
    own = heard.stage not in (START, AGAINST)
    return Death(kind, heard.stage, printable(detail), by_draft and own)


def _cause(failure: Failure | None, stderr: StderrTail, exit_code: int, timeout: int | None) -> Cause:
    if stderr.device_assert is not None:
        return "assert", stderr.device_assert, True
    if failure is not None:
        return _by_exception(failure)
    if timeout is not None:
        return "timeout", f"not done after {timeout} s", True
    if exit_code < 0:
        return _by_signal(-exit_code, stderr)
    said = f", and last said: {stderr.last_line}" if stderr.last_line else ""
    return "error", _line(f"it ended with exit code {exit_code} and no result{said}"), False


def _by_signal(number: int, stderr: StderrTail) -> Cause:
    name = signal.Signals(number).name if number in [*signal.Signals] else f"signal {number}"
    if number == signal.SIGKILL:
        return "killed", f"{name}, which the system sends where memory runs out", False
    if number not in CRASHES:
        return "killed", name, False
    memory = next(filter(OUT_OF_MEMORY.search, stderr.lines), None)
    if memory is not None:
        return "out-of-memory", _line(memory), False
    where = f" in {stderr.innermost_frame}" if stderr.innermost_frame else ""
    return "crash", f"{name}{where}", True


def _by_exception(failure: Failure) -> Cause:
    if failure.type == Unreadable.__name__:  # a sentence of this project's own
        return "error", _line(failure.message), False
    told = _line(f"{failure.type}: {failure.message}")
    if failure.type in MEMORY_TYPES or OUT_OF_MEMORY.search(failure.message):
        return "out-of-memory", told, False
    if NO_DEVICE.search(failure.message):
        return "no-device", told, False
    if DEVICE_ASSERT in failure.message:
        return "assert", told, True
    return "error", f"{told} ({failure.at})", failure.type in OF_THE_DRAFT


def _line(text: str) -> str:
    """The first line that says something."""
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return first[:LONGEST]
