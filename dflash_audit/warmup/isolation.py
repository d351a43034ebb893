"""Runs a job in a child process, so that this one goes on however that ends. Imports no torch."""

import os
import pickle
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO, Final

from dflash_audit.warmup.ending import death
from dflash_audit.warmup.events import Heard
from dflash_audit.warmup.job import Job
from dflash_audit.warmup.result import WarmUp
from dflash_audit.warmup.stderr_tail import StderrTail

CHILD: Final = "dflash_audit.warmup.child"

AT_ONCE: Final = 2**16
"""Bytes moved at a time."""

GRACE: Final = 5.0
"""Seconds that a child may take to end once it has said all, or once it is killed."""


def warm_up(job: Job, timeout: int, module: str = CHILD) -> WarmUp:
    """Run `job` in a child of its own for at most `timeout` seconds; `module` is what the child runs.

    When this returns, or raises (KeyboardInterrupt), nothing of the child is left.
    """
    caches = _compile_caches()
    process = _start(module)
    talk = _Talk(process, pickle.dumps(job))
    try:
        in_time = talk.listen(timeout)
        if in_time:
            _await_end(process)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        _await_end(process)
        talk.close()
        for made in _compile_caches() - caches:
            with suppress(OSError):  # what something was compiled into stays
                made.rmdir()
    if talk.heard.result is not None:
        return talk.heard.result
    code = -signal.SIGKILL if process.returncode is None else process.returncode
    died = death(talk.heard, talk.stderr, code, None if in_time else timeout)
    backend, device = talk.heard.running or (job.backend, job.device)
    return WarmUp(job.engine, backend, device, job.dtype, death=died)


def _compile_caches() -> set[Path]:
    """The folders for compiled code that torch makes in the temporary one as soon as it is imported."""
    return set(Path(tempfile.gettempdir()).glob("torchinductor_*"))


def _start(module: str) -> subprocess.Popen[bytes]:
    """A child in a session of its own, which its process group is named after."""
    environment = {
        **os.environ,
        # The child finds what this process finds, and with -P nothing that lies where it is run.
        "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path),
        # So an assert stops the operation that fails, not a later one.
        "CUDA_LAUNCH_BLOCKING": "1",
    }
    pipe = subprocess.PIPE
    command = [sys.executable, "-P", "-m", module]
    return subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, env=environment, start_new_session=True
    )


def _await_end(process: subprocess.Popen[bytes]) -> None:
    with suppress(subprocess.TimeoutExpired):
        process.wait(GRACE)


class _Talk:
    """Gives a child its job, and takes in what comes of it.

    The child's standard input stays open after the job: the child ends with it.
    """

    def __init__(self, process: subprocess.Popen[bytes], job: bytes) -> None:
        assert process.stdin and process.stdout and process.stderr
        self.heard = Heard()
        self.stderr = StderrTail()
        self._unsent = memoryview(job)
        self._line = b""
        self._stdin, self._events = process.stdin, process.stdout
        self._readers: dict[IO[bytes], Callable[[bytes], None]] = {
            self._events: self._hear,
            process.stderr: self.stderr.feed,
        }
        for end in (self._stdin, *self._readers):
            os.set_blocking(end.fileno(), False)

    def listen(self, timeout: float) -> bool:
        """Until the child has said all or is gone; False where `timeout` seconds were not enough."""
        deadline = time.monotonic() + timeout
        with selectors.DefaultSelector() as selector:
            selector.register(self._stdin, selectors.EVENT_WRITE, self._send)
            for end in self._readers:
                selector.register(end, selectors.EVENT_READ, partial(self._read, end))
            while not self.heard.all and self._events in selector.get_map():
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                for key, _ in selector.select(left):
                    if not key.data():
                        selector.unregister(key.fileobj)
        return True

    def close(self) -> None:
        """Take in what a child that is gone has left in the pipes, and close them."""
        for end, take in self._readers.items():
            while chunk := end.read(AT_ONCE):
                take(chunk)
            end.close()
        self.stderr.close()
        self._stdin.close()

    def _send(self) -> bool:
        """Whether more of the job is to be written."""
        try:
            written = self._stdin.write(self._unsent[:AT_ONCE])
        except BrokenPipeError:
            return False
        self._unsent = self._unsent[written or 0 :]
        return len(self._unsent) > 0

    def _read(self, end: IO[bytes]) -> bool:
        """Whether more can come from this end."""
        chunk: bytes | None = end.read(AT_ONCE)
        if chunk:
            self._readers[end](chunk)
        return chunk != b""

    def _hear(self, chunk: bytes) -> None:
        *lines, self._line = (self._line + chunk).split(b"\n")
        for line in lines:
            self.heard.line(line)
