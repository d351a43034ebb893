"""A child whose forward pass does what the job's `forward` says; run as `python -m warmup.children`.

The plumbing around it is the real one. A job's `forward` is the name of one of
the functions below; `job.model_class` is the stage in which it happens.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

from dflash_audit.refusal import NotModelled, Refused
from dflash_audit.warmup.child import run
from dflash_audit.warmup.events import START, Teller
from dflash_audit.warmup.job import Job
from dflash_audit.warmup.result import Stage, WarmUp

CUDA_ASSERT = (
    "/pytorch/aten/src/ATen/native/cuda/Indexing.cu:1553: indexSelectSmallIndex: block: [0,0,0],"
    " thread: [96,0,0] Assertion `srcIndex < srcSelectDimSize` failed.\n"
)


class AcceleratorError(RuntimeError):
    """Named as PyTorch names its own."""


class OutOfMemoryError(RuntimeError):
    """Named as PyTorch names its own."""


def warm_up(job: Job, tell: Teller) -> WarmUp:
    """Go through the stages up to the one of the job, and do there what it says."""
    for stage in ("weights", "fc", "hidden"):
        if job.model_class == START:
            break
        tell(stage)
        if stage == job.model_class:
            break
    return globals()[job.forward](job, tell)  # type: ignore[no-any-return]


def pass_(job: Job, tell: Teller) -> WarmUp:
    tell.running("reference", "cpu")
    return WarmUp(job.engine, "reference", "cpu", job.dtype, (Stage("fc", 0.5, 0.0, 3.5),), peak_bytes=17)


def noise(job: Job, tell: Teller) -> WarmUp:
    """Print as libraries do, through Python and below it, before and between events."""
    print("a library says hello")
    os.write(1, b'{"stage": "a lie"}\n')
    subprocess.run([sys.executable, "-c", "print('a grandchild')"], check=True)
    os.write(2, b"x" * 300_000 + b"\n")
    return pass_(job, tell)


def environment(job: Job, tell: Teller) -> WarmUp:
    """Tell what the process was given, as reasons of a skip."""
    told = [os.environ["CUDA_LAUNCH_BLOCKING"], str(os.getsid(0) == os.getpid()), repr(sys.path[0])]
    return WarmUp(job.engine, "", "", "", skipped=" ".join(told))


def segfault(job: Job, tell: Teller) -> WarmUp:
    ctypes.string_at(0)
    raise AssertionError("unreachable")


def abort(job: Job, tell: Teller) -> WarmUp:
    os.abort()


def bus(job: Job, tell: Teller) -> WarmUp:
    os.kill(os.getpid(), signal.SIGBUS)
    raise AssertionError("unreachable")


def kill(job: Job, tell: Teller) -> WarmUp:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


def terminate(job: Job, tell: Teller) -> WarmUp:
    os.kill(os.getpid(), signal.SIGTERM)
    raise AssertionError("unreachable")


def leave(job: Job, tell: Teller) -> WarmUp:
    os.write(2, b"giving up\n")
    os._exit(3)


def leave_in_peace(job: Job, tell: Teller) -> WarmUp:
    os._exit(0)


def bug(job: Job, tell: Teller) -> WarmUp:
    raise KeyError("no such layer\nin there")


def shapes(job: Job, tell: Teller) -> WarmUp:
    raise RuntimeError("mat1 and mat2 shapes cannot be multiplied (8x64 and 96x64)\n\nadvice")


def out_of_range(job: Job, tell: Teller) -> WarmUp:
    raise IndexError("index out of range in self")


def not_modelled(job: Job, tell: Teller) -> WarmUp:
    raise NotModelled("this scheme is not unpacked here")


def refused(job: Job, tell: Teller) -> WarmUp:
    raise Refused("the size does not fit the kernel")


def memory_error(job: Job, tell: Teller) -> WarmUp:
    raise MemoryError


def cuda_out_of_memory(job: Job, tell: Teller) -> WarmUp:
    raise OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")


def cpu_out_of_memory(job: Job, tell: Teller) -> WarmUp:
    raise RuntimeError("[enforce fail at alloc_cpu.cpp:129] . DefaultCPUAllocator: can't allocate memory")


def bad_alloc(job: Job, tell: Teller) -> WarmUp:
    os.write(
        2, b"terminate called after throwing an instance of 'c10::Error'\n  what():  CUDA out of memory.\n"
    )
    os.abort()


def no_device(job: Job, tell: Teller) -> WarmUp:
    raise RuntimeError("Found no NVIDIA driver on your system. Please check.")


def vanished(job: Job, tell: Teller) -> WarmUp:
    raise AcceleratorError("CUDA error: no CUDA-capable device is detected\nFor debugging consider")


def device_assert(job: Job, tell: Teller) -> WarmUp:
    """As PyTorch does after an assert: many lines, then an exception."""
    os.write(2, b"a warning\n" + CUDA_ASSERT.encode() * 5000)
    raise AcceleratorError("CUDA error: device-side assert triggered\nCUDA kernel errors might be")


def device_assert_that_aborts(job: Job, tell: Teller) -> WarmUp:
    """As a C++ exception in a destructor does."""
    os.write(2, CUDA_ASSERT.replace("indexSelectSmallIndex", "unknown").encode())
    os.abort()


def device_assert_unexplained(job: Job, tell: Teller) -> WarmUp:
    raise AcceleratorError("CUDA error: device-side assert triggered\nCUDA kernel errors might be")


def hang(job: Job, tell: Teller) -> WarmUp:
    """With a process of its own, and deaf to what can be ignored."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    helper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    tell(f"pids {os.getpid()} {helper.pid}")
    time.sleep(600)
    raise AssertionError("unreachable")


def hang_in_native_code(job: Job, tell: Teller) -> WarmUp:
    """Where no other thread of Python gets to run."""
    tell(f"pids {os.getpid()}")
    ctypes.PyDLL(None).sleep(600)
    raise AssertionError("unreachable")


def hang_silently(job: Job, tell: Teller) -> WarmUp:
    time.sleep(600)
    raise AssertionError("unreachable")


def hang_after_the_result(job: Job, tell: Teller) -> WarmUp:
    tell.result(replace(pass_(job, tell), skipped=f"pids {os.getpid()}"))
    time.sleep(600)
    raise AssertionError("unreachable")


def leave_a_helper(job: Job, tell: Teller) -> WarmUp:
    """A process that holds all that it inherited."""
    helper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], close_fds=False)
    return replace(pass_(job, tell), skipped=f"pids {helper.pid}")


def die_on_a_card(job: Job, tell: Teller) -> WarmUp:
    tell.running("reference", "cuda:1")
    os.abort()


def closed_events(job: Job, tell: Teller) -> WarmUp:
    tell(f"pids {os.getpid()}")
    os.closerange(3, 100)
    time.sleep(600)
    raise AssertionError("unreachable")


if __name__ == "__main__":
    run("warmup.children")
