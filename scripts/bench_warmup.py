"""Measure the warm-up of a draft as whole processes, and print a Markdown table.

    python scripts/bench_warmup.py DRAFT [DRAFT ...] [--device cpu|cuda] [--runs 3] [--option=…]

`scripts/make_full_size.py` makes a full-size draft. A figure is the median over the runs, after one that
does not count: seconds from command to verdict, what of it importing torch takes, the largest process'
peak of memory and, on a GPU, that of the tensors there, both as a multiple of the weight files' size.
Engines other than the default one are `--option=--engine=sglang-0.5.23`.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Run:
    """Wall-clock seconds and peak bytes of one process and its children, and what it printed."""

    seconds: float
    peak: int
    printed: str


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("drafts", nargs="+")
    options.add_argument("--device", default="cpu")
    options.add_argument("--runs", type=int, default=3)
    options.add_argument("--option", action="append", default=[])
    given = options.parse_args()
    torch = _median(_runs([sys.executable, "-c", "import torch"], given.runs))
    print(
        f"{date.today()}, Python {platform.python_version()}, {os.cpu_count()} cores, {given.device},"
        f" {given.runs} runs, medians; importing torch: {torch:.1f} s\n"
    )
    print(
        "| draft | engine | verdict | s | s beyond torch | memory / weights | on the GPU / weights | stages |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for draft in given.drafts:
        command = [sys.executable, "-m", "dflash_audit", draft, "--json", "--warmup"]
        runs = _runs([*command, "--device", given.device, *given.option], given.runs)
        _print(Path(draft), runs, torch)


def _runs(command: Sequence[str], count: int) -> list[Run]:
    return [_run(command) for _ in range(count + 1)][1:]


def _run(command: Sequence[str]) -> Run:
    with tempfile.TemporaryFile("w+") as out:
        begin = time.perf_counter()
        process = subprocess.Popen(command, stdout=out)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in (0, 1):
            raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
        out.seek(0)
        return Run(seconds, used.ru_maxrss * 1024, out.read())


def _median(runs: Sequence[Run]) -> float:
    return statistics.median(run.seconds for run in runs)


def _print(draft: Path, runs: Sequence[Run], torch: float) -> None:
    weights = sum(file.stat().st_size for file in draft.glob("*.safetensors"))
    seconds = _median(runs)
    memory = statistics.median(run.peak for run in runs) / weights
    reports: list[Any] = [json.loads(run.printed)["warmup"] for run in runs]
    for index, warmup in enumerate(reports[0]):
        peaks = [report[index]["peak_bytes"] for report in reports]
        on_gpu = f"{statistics.median(peaks) / weights:.2f}" if "cuda" in warmup["device"] else ""
        stages = ", ".join(f"{stage['name']} {stage['seconds']:.2f}" for stage in warmup["stages"])
        print(
            f"| {draft.name} | {warmup['engine']} | {warmup['verdict']} | {seconds:.1f} |"
            f" {seconds - torch:.1f} | {memory:.2f} | {on_gpu} | {stages} |"
        )


if __name__ == "__main__":
    main()
