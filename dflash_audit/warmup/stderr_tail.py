"""What a child wrote to standard error, of which only what tells how it died is kept."""

import re
from collections import deque
from typing import Final

LINES: Final = 200
WIDEST: Final = 2000

ASSERT: Final = re.compile(
    r"(?P<file>[^:\s]*):(?P<line>\d+): (?P<kernel>.*): block: \[\d+,\d+,\d+\], thread: \[\d+,\d+,\d+\]"
    r" Assertion `(?P<assertion>.*)` failed"
)
"""What CUDA's `__assert_fail` prints, once for each thread that fails."""

FRAME: Final = re.compile(r'File "(?P<path>[^"]*)", line (?P<line>\d+) in (?P<function>\S+)')
"""A frame as Python's faulthandler writes it, the innermost first."""


class StderrTail:
    """The last lines, the first assert of the device, and where in Python a crash was."""

    def __init__(self) -> None:
        self.device_assert: str | None = None
        self.innermost_frame: str | None = None
        self.lines: deque[str] = deque(maxlen=LINES)
        self._rest = b""

    def feed(self, chunk: bytes) -> None:
        """Take in what was read."""
        *lines, rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            self._line(line)
        # A line without an end must not grow for ever.
        self._rest = rest[-WIDEST:]

    def close(self) -> None:
        """Nothing follows."""
        if self._rest:
            self._line(self._rest)
            self._rest = b""

    @property
    def last_line(self) -> str:
        return next((line.strip() for line in reversed(self.lines) if line.strip()), "")

    def _line(self, raw: bytes) -> None:
        line = raw[:WIDEST].decode(errors="replace")
        self.lines.append(line)
        if self.device_assert is None and (found := ASSERT.search(line)):
            self.device_assert = f"`{found['assertion']}` in {_kernel(found)}"
        if self.innermost_frame is None and (found := FRAME.search(line)):
            self.innermost_frame = f"{_base(found['path'])}:{found['line']} ({found['function']})"


def _kernel(found: re.Match[str]) -> str:
    """The kernel by its name, or by its file where the compiler left that out (`unknown`)."""
    place = f"{_base(found['file'])}:{found['line']}"
    return place if found["kernel"] == "unknown" else f"{found['kernel']} ({place})"


def _base(path: str) -> str:
    return path.rpartition("/")[2]
