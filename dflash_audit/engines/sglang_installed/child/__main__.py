"""The child's conversation with the audit: a line of JSON in, a line out."""

import json
import logging
import os
import sys
import threading
import warnings
from collections.abc import Iterator
from queue import SimpleQueue
from typing import Any

from dflash_audit.engines.sglang_installed.child.card import NoDriver, claim_card


def main(capability: int) -> None:
    out = _own_stdout()

    def say(answer: dict[str, Any]) -> None:
        out.write(json.dumps(answer) + "\n")

    logging.disable(logging.WARNING)
    warnings.filterwarnings("ignore")
    jobs = _jobs()
    try:
        claim_card(capability)
        import sglang

        from dflash_audit.engines.sglang_installed.child.recording import prepare, record
        from dflash_audit.engines.sglang_installed.child.without_gpu import replace_what_needs_a_gpu

        prepare()
        replace_what_needs_a_gpu()
    except NoDriver as error:
        say({"failure": str(error)})
        return
    except Exception as error:  # whatever it is, it is the installation's
        say({"failure": f"the installed SGLang cannot be used: {_line(error)}"})
        return
    say({"version": sglang.__version__})
    for job in jobs:
        try:
            answer = record(**job)
        except Exception as error:  # a stage catches what the engine says of a draft
            answer = {"failure": f"the recording failed: {_line(error)}"}
        say(answer)


def _own_stdout() -> Any:
    """Standard output for the answers alone: what a library prints goes where errors go."""
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return out


def _jobs() -> Iterator[dict[str, Any]]:
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


if __name__ == "__main__":
    main(int(sys.argv[1]))
