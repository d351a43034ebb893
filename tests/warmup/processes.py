"""Whether a process is there."""

import os
import time
from collections.abc import Iterable
from pathlib import Path


def running(pid: int) -> bool:
    """Whether the process runs; one that has ended and waits for its parent does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    try:
        return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def all_gone(pids: Iterable[int], within: float = 10.0) -> bool:
    """Whether all of them end in so many seconds."""
    deadline = time.monotonic() + within
    while any(running(pid) for pid in pids):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
