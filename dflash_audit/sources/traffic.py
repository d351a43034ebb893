"""The requests of this process to the Hub, held back together where the Hub asks for it.

A limit counts requests of an address or of a token, whichever repo they are for, so what
one answer says holds for all: none is sent before the time that it names.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from time import monotonic, sleep
from typing import Final

LONGEST_WAIT: Final = 60.0
"""Most seconds that a server may make one audit wait; one that asks for more is told of instead."""


class TooLong(Exception):
    """No request is to be made for longer than anybody waits."""


class Traffic:
    """`longest_wait` is the most seconds that a server may ask for, before the reader gives up."""

    def __init__(self) -> None:
        self.longest_wait = LONGEST_WAIT
        self._slots: threading.Semaphore | None = None
        self._free_at = 0.0
        self._lock = threading.Lock()

    def share(self, at_once: int, longest_wait: float) -> None:
        """Let many readers share it, before any request: at most so many requests are under way."""
        self._slots = threading.Semaphore(at_once)
        self.longest_wait = longest_wait

    @contextmanager
    def request(self) -> Iterator[None]:
        """The body is one request, made once there is room for it and nobody is to wait; raises TooLong."""
        with self._slots or nullcontext():
            while (left := self.held()) > 0:
                if self.stopped():
                    raise TooLong(f"{left:.0f} s")
                sleep(left)
            yield

    def back_off(self, seconds: float, everyone: bool) -> None:
        """Wait before another attempt; with `everyone` no request begins before that."""
        if everyone:
            self.hold(seconds)
        sleep(seconds)

    def hold(self, seconds: float) -> None:
        """Begin no request before that."""
        with self._lock:
            self._free_at = max(self._free_at, monotonic() + seconds)

    def held(self) -> float:
        """Seconds until a request may begin, 0 where one may now."""
        return max(0.0, self._free_at - monotonic())

    def stopped(self) -> bool:
        """Whether that is longer than anybody waits."""
        return self.held() > self.longest_wait


TRAFFIC: Final = Traffic()
"""Of this process, as its session is."""
