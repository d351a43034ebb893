"""A child's conversation with the audit: a line of JSON in, a line out."""

import json
import logging
import os
import resource
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

from dflash_audit.engines.installed.child.card import NoDriver

Record = dict[str, Any]


class Started(NamedTuple):
    """A package that is imported: its version, and what it does with the draft of a job."""

    version: str
    record: Callable[..., Record]


def converse(title: str, start: Callable[[int], Started], capability: int) -> None:
    """Import the package that people call `title` by `start`, on a card of this capability, and answer."""
    out = _own_stdout()

    def say(answer: Record) -> None:
        out.write(json.dumps(answer) + "\n")

    logging.disable(logging.WARNING)
    warnings.filterwarnings("ignore")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _be_the_first_to_go()
    jobs = read_jobs()
    try:
        version, record = start(capability)
    except NoDriver as error:
        say({"failure": str(error)})
        return
    except Exception as error:  # whatever it is, it is the installation's
        say({"failure": f"the installed {title} cannot be used: {_line(error)}"})
        return
    say({"version": version})
    for job in jobs:
        try:
            answer = record(**job)
        except Exception as error:  # a stage catches what the engine says of a draft
            answer = {"failure": f"the recording failed: {_line(error)}"}
        say(answer)


def _be_the_first_to_go() -> None:
    """Where memory runs out, it is this process that Linux ends: a config may ask for any amount."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def _own_stdout() -> Any:
    """Standard output for the answers alone: what a library prints goes where errors go."""
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return out


def read_jobs() -> Iterator[dict[str, Any]]:
    """The jobs as they come; when the audit is gone the child ends, whatever it is at."""
    queue: SimpleQueue[dict[str, Any]] = SimpleQueue()

    def read() -> None:
        for line in sys.stdin:
            queue.put(json.loads(line))
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    return iter(queue.get, None)


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:400]}"
