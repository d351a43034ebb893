"""What the child tells the parent while it runs. Imports no torch.

The child writes to what was its standard output one JSON object a line, each
with one key, as soon as it is true:

    {"running": {"backend": "reference", "device": "cuda:0"}}
        what `auto` came to; at most once
    {"stage": "layer 0"}
        this stage begins; "start" stands for what comes before the first
    {"failed": {"type": "KeyError", "message": "…", "at": "memory.py:31 in fill"}}
        a Python exception ended the stage that is on; the last line
    {"result": {…}}
        the `WarmUp`, as `result_json` writes it; the last line

A line that is none of these is passed over: it is not the child's own. A child
that ends without a last line died, and how it ended says of what.
"""

import json
from dataclasses import dataclass
from typing import IO, Any, Final

from dflash_audit.warmup.result import WarmUp
from dflash_audit.warmup.result_json import from_dict, to_dict

START: Final = "start"
"""The stage in which a child begins: imports, and whatever else comes before the first that it tells."""

AGAINST: Final = "against"
"""The stage in which another draft is run and compared."""


class Teller:
    """The child's side; called with a stage's name as it begins."""

    def __init__(self, events: IO[str]) -> None:
        self._events = events

    def __call__(self, stage: str) -> None:
        self._say("stage", stage)

    def running(self, backend: str, device: str) -> None:
        """What the backend and the device are where the job left them open."""
        self._say("running", {"backend": backend, "device": device})

    def failed(self, error: BaseException, at: str) -> None:
        self._say("failed", {"type": type(error).__name__, "message": str(error), "at": at})

    def result(self, warmup: WarmUp) -> None:
        self._say("result", to_dict(warmup))

    def _say(self, key: str, value: Any) -> None:
        # ASCII, and on one line: a newline in a message is escaped.
        self._events.write(json.dumps({key: value}, allow_nan=False) + "\n")
        self._events.flush()


@dataclass(frozen=True, slots=True)
class Failure:
    """A Python exception: its class's name, what it says, and the line of this project that met it."""

    type: str
    message: str
    at: str


@dataclass(slots=True)
class Heard:
    """The parent's side: what a child has told so far."""

    stage: str = START
    running: tuple[str, str] | None = None
    failure: Failure | None = None
    result: WarmUp | None = None

    @property
    def all(self) -> bool:
        """Whether the last line came."""
        return self.result is not None or self.failure is not None

    def line(self, line: bytes) -> None:
        """Take in one line."""
        try:
            match json.loads(line):
                case {"stage": str(stage)}:
                    self.stage = stage
                case {"running": {"backend": str(backend), "device": str(device)}}:
                    self.running = backend, device
                case {"failed": {"type": str(name), "message": str(message), "at": str(at)}}:
                    self.failure = Failure(name, message, at)
                case {"result": dict(said)}:
                    self.result = from_dict(said)
        except (ValueError, KeyError, TypeError, RecursionError):
            pass
