"""The child process that imports an engine's package, as the audit holds it."""

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import IO, Any, Final, Self

from dflash_audit.engines.installed.packages import Package
from dflash_audit.errors import Unreadable

LONGEST_START: Final = 600.0
LONGEST_JOB: Final = 1200.0
"""Seconds until the child is given up: its import takes a minute at most, as does a draft of 4 GB."""

LONGEST_ANSWER: Final = 1 << 28
"""Bytes of an answer until the child is given up: a draft of 100,000 tensors takes a tenth of it."""

LAST_WORDS: Final = 1 << 14
"""Bytes at the end of its standard error that are looked at."""

Record = dict[str, Any]

Job = Mapping[str, Any]
"""A draft for the child, as what its `record` takes: the folder, and the server's options for it."""


class Process:
    """One child on a card of a compute capability (times ten), for any number of jobs, one after another.

    It lives no longer than this object, nor than this process: its standard input
    is its lifeline. Every failure of the child itself is `Unreadable`
    (engine-failed), which says how it ended.
    """

    def __init__(
        self,
        package: Package,
        capability: int,
        longest_start: float = LONGEST_START,
        longest_job: float = LONGEST_JOB,
        longest_answer: int = LONGEST_ANSWER,
    ) -> None:
        self.package = package
        self._longest_job = longest_job
        self._longest_answer = longest_answer
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the child
        self._child = subprocess.Popen(
            [sys.executable, "-m", package.child, str(capability)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            # Neither it nor a Python that it starts imports from the folder that the audit is run in.
            env={**os.environ, "PYTHONSAFEPATH": "1"},
            start_new_session=True,  # so that what it starts, a compiler, ends with it
        )
        self._unread = bytearray()
        try:
            self.version = str(self._answer(longest_start, f"imports {package.title}")["version"])
        except BaseException:
            self.close()
            raise

    def ask(self, job: Job) -> Record:
        """What the engine does with a draft, as the child records it."""
        assert self._child.stdin is not None
        with suppress(BrokenPipeError):  # the answer tells how it ended
            self._child.stdin.write(json.dumps(job).encode() + b"\n")
            self._child.stdin.flush()
        return self._answer(self._longest_job, "builds and loads the draft")

    def close(self) -> None:
        """End the child and all that it started."""
        with suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.SIGKILL)
        self._child.wait()
        for file in (self._child.stdin, self._child.stdout, self._log):
            with suppress(BrokenPipeError):
                if file is not None:
                    file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _answer(self, seconds: float, doing: str) -> Record:
        """The child's next line; what it does meanwhile is `doing`."""
        line = self._line(time.monotonic() + seconds)
        if line is None:
            raise self._failed(f"no answer within {seconds:.0f} s while it {doing}")
        if not line:
            raise self._failed(f"its process {self._ending()} while it {doing}{self._last_words()}")
        record: Record = json.loads(line)
        if "failure" in record:
            raise self._failed(record["failure"])
        return record

    def _line(self, deadline: float) -> bytes | None:
        """A line without its end; empty where the child is gone, None where it is late."""
        assert self._child.stdout is not None
        pipe = self._child.stdout.fileno()
        seen = 0
        while (end := self._unread.find(b"\n", seen)) < 0:
            seen = len(self._unread)
            if seen > self._longest_answer:
                raise self._failed(f"its answer is longer than {self._longest_answer} bytes")
            ready, _, _ = select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                return None
            more = os.read(pipe, 1 << 16)
            if not more:
                return b""
            self._unread += more
        line = bytes(self._unread[:end])
        del self._unread[: end + 1]
        return line

    def _ending(self) -> str:
        code = self._child.wait()
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"

    def _last_words(self) -> str:
        """The last line that it wrote to its standard error."""
        end = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, end - LAST_WORDS))
        lines = [line.strip() for line in self._log.read().decode(errors="replace").splitlines()]
        said = [line for line in lines if line]
        return f" ({said[-1][:300]})" if said else ""

    def _failed(self, reason: str) -> Unreadable:
        return failed(self.package.engine, reason)


def failed(engine: str, reason: str) -> Unreadable:
    """The engine itself could not be asked; nothing is known of the draft."""
    return Unreadable("engine-failed", engine, reason)
