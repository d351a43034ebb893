"""The child process that imports SGLang, as the audit holds it."""

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import IO, Any, Final, Self

from dflash_audit.errors import Unreadable

ENGINE: Final = "sglang@installed"
CHILD: Final = f"{__package__}.child"

LONGEST_START: Final = 600.0
LONGEST_JOB: Final = 1200.0
"""Seconds until the child is given up: its import takes a minute at most, as does a draft of 4 GB."""

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Job:
    """A draft for the child: its folder, and the server's options for it."""

    folder: str
    quantization: str | None = None
    attention_backend: str | None = None


class Process:
    """One child on a card of a compute capability (times ten), for any number of jobs, one after another.

    It lives no longer than this object, nor than this process: its standard input
    is its lifeline. Every failure of the child itself is `Unreadable`
    (engine-failed), which says how it ended.
    """

    def __init__(
        self, capability: int, longest_start: float = LONGEST_START, longest_job: float = LONGEST_JOB
    ) -> None:
        self._longest_job = longest_job
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the child
        self._child = subprocess.Popen(
            # -P: nothing is imported from the folder that the audit happens to be run in.
            [sys.executable, "-P", "-m", CHILD, str(capability)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,  # so that what it starts, a compiler, ends with it
        )
        self._unread = b""
        try:
            self.version = str(self._answer(longest_start, "imports SGLang")["version"])
        except BaseException:
            self.close()
            raise

    def ask(self, job: Job) -> Record:
        """What SGLang does with a draft, as the child records it."""
        assert self._child.stdin is not None
        with suppress(BrokenPipeError):  # the answer tells how it ended
            self._child.stdin.write(json.dumps(asdict(job)).encode() + b"\n")
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
            raise failed(f"no answer within {seconds:.0f} s while it {doing}")
        if not line:
            raise failed(f"its process {self._ending()} while it {doing}{self._last_words()}")
        record: Record = json.loads(line)
        if "failure" in record:
            raise failed(record["failure"])
        return record

    def _line(self, deadline: float) -> bytes | None:
        """A line without its end; empty where the child is gone, None where it is late."""
        assert self._child.stdout is not None
        pipe = self._child.stdout.fileno()
        while b"\n" not in self._unread:
            ready, _, _ = select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                return None
            more = os.read(pipe, 1 << 16)
            if not more:
                return b""
            self._unread += more
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _ending(self) -> str:
        code = self._child.wait()
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"

    def _last_words(self) -> str:
        """The last line that it wrote to its standard error."""
        self._log.seek(0)
        lines = [line.strip() for line in self._log.read().decode(errors="replace").splitlines()]
        said = [line for line in lines if line]
        return f" ({said[-1][:300]})" if said else ""


def failed(reason: str) -> Unreadable:
    """The engine itself could not be asked; nothing is known of the draft."""
    return Unreadable("engine-failed", ENGINE, reason)
