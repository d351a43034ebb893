"""The real engines, each in a process of its own, which is started when it is asked for."""

import json
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from record_cases import CHANGED

WORKER = Path(__file__).with_name("worker.py")

Record = dict[str, Any]


class EngineDied(Exception):
    """The engine's process ended on a case; the next question starts another."""


class Worker:
    """One process: an engine on a card. `kind` is what `worker.py` calls it."""

    def __init__(self, python: str, kind: str, capability: int) -> None:
        command = [python, str(WORKER), kind, str(capability)]
        self._child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        greeting = self._read()
        self.engine: str = greeting["engine"]
        self.versions: dict[str, str] = greeting["versions"]

    def ask(self, case: Path) -> Record:
        """The record of a case folder; raises `EngineDied`."""
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(json.dumps(str(case)) + "\n")
            self._child.stdin.flush()
        except BrokenPipeError:
            raise EngineDied from None
        return self._read()

    def _read(self) -> Record:
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        if not line:
            raise EngineDied
        record: Record = json.loads(line)
        return record

    def close(self) -> None:
        self._child.kill()
        self._child.wait()
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                pipe.close()


class Engines:
    """The release of an environment, and the changed one where the release is what the change is for.

    `kind` is sglang or vllm, whichever the environment of `python` holds.
    """

    def __init__(self, python: str, capability: int, kind: str = "sglang") -> None:
        self.capability = capability
        self._python = python
        self._workers: dict[str, tuple[Worker, str]] = {}
        released = self._start(kind)
        self.versions = released.versions
        if released.engine == CHANGED:
            self._start("sglang-next")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._workers)

    def records(self, case: Path) -> dict[str, Record]:
        """Engine -> its record of a case; raises `EngineDied`, and is ready for the next."""
        found = {}
        for name, (worker, kind) in self._workers.items():
            try:
                found[name] = worker.ask(case)
            except EngineDied:
                worker.close()
                self._start(kind)
                raise
        return found

    def _start(self, kind: str) -> Worker:
        worker = Worker(self._python, kind, self.capability)
        self._workers[worker.engine] = (worker, kind)
        return worker

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker, _ in self._workers.values():
            worker.close()
