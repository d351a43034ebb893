"""Stands for the child: does at its start, and with a job, what the environment says."""

import json
import os
import signal
import sys
import time

from dflash_audit.engines.sglang_installed.child.__main__ import _jobs


def act(what: str) -> None:
    if what == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if what == "exit":
        print("first line", file=sys.stderr)
        print("out of luck", file=sys.stderr)
        os._exit(7)
    if what == "hang":
        time.sleep(600)
    if what == "fail":
        print(json.dumps({"failure": "it has no gcc"}), flush=True)


if __name__ == "__main__":
    jobs = _jobs()
    act(os.environ.get("AT_START", ""))
    print(json.dumps({"version": "9.9.9", "pid": os.getpid()}), flush=True)
    for job in jobs:
        act(os.environ.get("AT_JOB", ""))
        print(json.dumps({"job": job}), flush=True)
