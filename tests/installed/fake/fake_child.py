"""Stands for the child: does at its start, and with a job, what the environment says."""

import json
import os
import signal
import subprocess
import sys
import time

from dflash_audit.engines.installed.child.conversation import read_jobs


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
    if what == "start":
        done = subprocess.run([sys.executable, "-c", "import json"], check=False)
        print(json.dumps({"ended": done.returncode}), flush=True)
    while what == "flood":
        sys.stdout.write("x" * (1 << 16))
    if what == "shout":
        sys.stderr.write("\x1b[31m" * (1 << 20))
        sys.stderr.flush()
        os._exit(7)


if __name__ == "__main__":
    jobs = read_jobs()
    act(os.environ.get("AT_START", ""))
    print(json.dumps({"version": "9.9.9", "pid": os.getpid()}), flush=True)
    for job in jobs:
        act(os.environ.get("AT_JOB", ""))
        print(json.dumps({"job": job}), flush=True)
