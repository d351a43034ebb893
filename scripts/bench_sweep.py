"""Measure a sweep of a Hub on this machine that takes 100 ms a request, and print a Markdown table.

    python scripts/bench_sweep.py [--runs 3] [--jobs 5] [--delay 0.1] [--repos 50 200 800]

The repos are the published layouts of fixtures/, in turn, as sparse files in full size. The Hub is a
process of its own, whose CPU is not the sweep's, though it takes it from the same cores. `at best` is what
the requests that were made take with as many under way as may be: requests x delay / jobs. A figure is the
median over the runs; the CPU's is user and system, with the start of the program.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from multiprocessing import Pipe, Process
from multiprocessing.connection import Connection
from pathlib import Path
from time import monotonic
from typing import Any, Final, SupportsIndex

ROOT: Final = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from hub.fake_hub import FakeHub, serve  # noqa: E402
from materialize import encoded_header  # noqa: E402

PUBLISHED: Final = ROOT / "fixtures" / "published"
JSON: Final = ("config.json", "hf_quant_config.json")


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds by the clock and of CPU, peak MiB, requests that were made."""

    wall: float
    cpu: float
    peak: float
    requests: int


class Sparse(bytes):
    """The start of a file, and zeros up to its size."""

    size: int

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, part: SupportsIndex | slice) -> Any:
        assert isinstance(part, slice)
        begin, end, _ = part.indices(self.size)
        return bytes.__getitem__(self, part).ljust(end - begin, b"\0")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--runs", type=int, default=3)
    options.add_argument("--jobs", type=int, default=5)
    options.add_argument("--delay", type=float, default=0.1)
    options.add_argument("--repos", type=int, nargs="+", default=[50, 200, 800])
    given = options.parse_args()
    before = os.getloadavg()[0]
    with _hub(max(given.repos), given.delay) as (url, requests):
        costs = {
            repos: [_run(url, requests, repos, given.jobs) for _ in range(given.runs)]
            for repos in given.repos
        }
    print(
        f"{date.today()}, Python {platform.python_version()}, {os.cpu_count()} cores,"
        f" load {before:.1f} before, {given.jobs} jobs, {given.delay * 1000:.0f} ms a request,"
        f" medians of {given.runs} runs\n"
    )
    print("| repos | requests | at best s | s | x | CPU s | CPU ms a repo | peak MiB |")
    print("|---|---|---|---|---|---|---|---|")
    for repos, measured in costs.items():
        cost = Cost(*(statistics.median(column) for column in zip(*map(_figures, measured), strict=True)))
        best = cost.requests * given.delay / given.jobs
        ratio = f"{cost.wall / best:.2f}" if best else "-"
        print(
            f"| {repos} | {cost.requests:.0f} | {best:.1f} | {cost.wall:.1f} | {ratio} | {cost.cpu:.1f}"
            f" | {cost.cpu / repos * 1000:.0f} | {cost.peak:.0f} |"
        )


def _figures(cost: Cost) -> tuple[Any, ...]:
    return cost.wall, cost.cpu, cost.peak, cost.requests


@contextmanager
def _hub(repos: int, delay: float) -> Iterator[tuple[str, Connection]]:
    """The Hub's address, and a pipe that answers how many requests there were since it was asked last."""
    ours, theirs = Pipe()
    process = Process(target=_serve, args=(repos, delay, theirs), daemon=True)
    process.start()
    try:
        yield ours.recv(), ours
    finally:
        ours.send(None)
        process.join()


def _serve(repos: int, delay: float, asked: Connection) -> None:
    hub = FakeHub(delay=delay)
    drafts = [_files(folder) for folder in sorted(PUBLISHED.iterdir()) if (folder / "tensors.json").exists()]
    for number in range(repos):
        hub.repo(f"org/draft-{number}", drafts[number % len(drafts)])
    with serve(hub):
        asked.send(hub.url)
        while asked.recv() is not None:
            asked.send(len(hub.log))
            hub.log.clear()


def _files(case: Path) -> dict[str, bytes]:
    header, data = encoded_header(json.loads((case / "tensors.json").read_text()))
    weights = Sparse(header)
    weights.size = len(header) + data
    small = {name: (case / name).read_bytes() for name in JSON if (case / name).exists()}
    return {**small, "model.safetensors": weights}


def _run(url: str, requests: Connection, repos: int, jobs: int) -> Cost:
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "out.jsonl"
        names = Path(scratch) / "names"
        names.write_text("".join(f"org/draft-{number}\n" for number in range(repos)))
        environment = {**os.environ, "HF_ENDPOINT": url, "HF_HOME": scratch, "HF_HUB_DISABLE_TELEMETRY": "1"}
        words = ["sweep", "--from", str(names), "-o", str(out), f"--jobs={jobs}"]
        started = monotonic()
        process = subprocess.Popen(
            [sys.executable, "-m", "dflash_audit", *words], stderr=subprocess.DEVNULL, env=environment
        )
        _, status, used = os.wait4(process.pid, 0)
        wall = monotonic() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        # Line by line: a child's peak is counted from its parent's size on.
        with out.open() as file:
            errors = [json.loads(line)["error"] for line in file]
    failed = [error["message"] for error in errors if error]
    if len(errors) != repos or failed:
        raise SystemExit(f"{len(errors)} of {repos} lines; {len(failed)} could not be read: {failed[:3]}")
    requests.send("how many?")
    return Cost(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, requests.recv())


if __name__ == "__main__":
    main()
