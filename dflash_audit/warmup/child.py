"""The child's side of a warm-up: `python -m dflash_audit.warmup.child`.

It reads a pickled `Job` from its standard input and tells what happens as
`events` describes, on what was its standard output;
what libraries print goes to standard error. It ends with its parent.
"""

import faulthandler
import os
import pickle
import resource
import sys
import traceback
from importlib import import_module
from pathlib import Path
from typing import Final

from dflash_audit.refusal import NotModelled
from dflash_audit.warmup.events import Teller
from dflash_audit.warmup.lifeline import hold
from dflash_audit.warmup.result import WarmUp

FORWARD_PASS: Final = "dflash_audit.warmup.forward_pass"
PROJECT: Final = Path(__file__).parents[1]


def run(forward_pass: str) -> None:
    """Do the job and end the process. `forward_pass` is a module with a function

        warm_up(job: Job, tell: Teller) -> WarmUp

    It calls `tell` with a stage's name as the stage begins, and `tell.running` once
    it knows what `auto` comes to. With `job.provoke` it lets an id out of range
    through and returns, if it does return, what a run without `provoke` would.
    It may raise: `NotModelled` for what cannot be run here (a skip), `Refused` for
    what the engine itself would refuse, anything else as it comes.
    """
    tell = Teller(os.fdopen(os.dup(sys.stdout.fileno()), "w"))
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    # Where a crash was is told on standard error; a core dump of so much memory is of no use to anyone.
    faulthandler.enable(all_threads=False)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    code = 1
    try:
        job = pickle.load(sys.stdin.buffer)
        hold()
        try:
            # Only here, so that what goes wrong with torch itself is told as well.
            tell.result(import_module(forward_pass).warm_up(job, tell))
        except NotModelled as unknown:
            tell.result(WarmUp(job.engine, job.backend, job.device, job.dtype, skipped=unknown.reason))
        code = 0
    except BaseException as error:
        traceback.print_exc()
        tell.failed(error, _place(error))
    finally:
        sys.stderr.flush()
        # At once: a broken CUDA context may keep the interpreter from ending by itself.
        os._exit(code)


def _place(error: BaseException) -> str:
    """The innermost line of this project that an exception came through."""
    frames = traceback.extract_tb(error.__traceback__)
    frame = next(frame for frame in reversed(frames) if PROJECT in Path(frame.filename).parents)
    return f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}"


if __name__ == "__main__":
    run(FORWARD_PASS)
