"""Measure the audit as whole processes, beside what it is compared with, and print a Markdown table.

    python scripts/bench.py [--runs 15] [--sglang-python PYTHON]

The draft is the full-size layout of Qwen3.8-27B-DFlash2 as a sparse file. Commands run in turn
(A B C A B C ...), after one run each that does not count; a figure is the median over the runs, of CPU
time (user and system, children too) and of peak memory. With a Python that holds sglang==0.5.23, the
real engine stands beside it, three times: it is imported, and builds and loads the same draft on the CPU
as the release does and with the change of `sglang-next`; and a toy of the same class, which costs little
more than the import.
"""

import argparse
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from materialize import materialize  # noqa: E402

LAYOUT: Final = ROOT / "fixtures" / "published" / "qwen3.8-27b-dflash2"
TOY: Final = ROOT / "fixtures" / "cases" / "dense-dflash2"
ECHO: Final = "import typer\ndef main(word: str) -> None:\n    print(word)\ntyper.run(main)\n"
HEADER: Final = (
    "import json, sys\n"
    "with open(sys.argv[1], 'rb') as file:\n"
    "    print(len(json.loads(file.read(int.from_bytes(file.read(8), 'little')))))\n"
)
ENGINE_RUNS: Final = 3


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU seconds and peak MiB of one process."""

    cpu: float
    peak: float


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--runs", type=int, default=15)
    options.add_argument("--sglang-python", help="a Python that holds sglang==0.5.23")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        draft = materialize(LAYOUT, Path(scratch) / "draft")
        echo, header = _script(scratch, "echo", ECHO), _script(scratch, "header", HEADER)
        audit = [str(Path(sys.executable).with_name("dflash-audit"))]
        costs = in_turn(
            {
                "a typer program that prints its argument": [sys.executable, echo, "word"],
                "`dflash-audit DIR --json`": [*audit, str(draft), "--json"],
                "`dflash-audit --help`": [*audit, "--help"],
                "`dflash-audit --version`": [*audit, "--version"],
                "bare Python that parses the header": [
                    sys.executable,
                    header,
                    str(draft / "model.safetensors"),
                ],
            },
            given.runs,
        )
        if given.sglang_python:
            record = [given.sglang_python, str(ROOT / "scripts" / "record_cases.py")]
            real = {
                "SGLang 0.5.23 itself: import, build, load": [*record, _copy(LAYOUT, scratch)],
                "SGLang 0.5.23 itself, on a toy of the same class": [*record, _copy(TOY, scratch)],
            }
            costs |= in_turn(real, ENGINE_RUNS)
    _print(costs, given.runs)


def _script(folder: str, name: str, code: str) -> str:
    path = Path(folder) / f"{name}.py"
    path.write_text(code)
    return str(path)


def _copy(case: Path, scratch: str) -> str:
    """A folder with the case alone, for the record would be written over the repository's."""
    folder = Path(scratch) / f"real-{case.name}"
    shutil.copytree(case, folder / case.name)
    return str(folder)


def in_turn(commands: Mapping[str, Sequence[str]], runs: int) -> dict[str, list[Cost]]:
    costs: dict[str, list[Cost]] = {name: [] for name in commands}
    for number in range(runs + 1):
        for name, command in commands.items():
            cost = _run(command)
            if number:
                costs[name].append(cost)
    return costs


def _run(command: Sequence[str]) -> Cost:
    # The run that does not count leaves compiled modules behind, as an installed program has them.
    caching = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=caching)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def _print(costs: Mapping[str, list[Cost]], runs: int) -> None:
    base, *_ = costs.values()
    print(
        f"{date.today()}, Python {platform.python_version()}, {os.cpu_count()} cores, {runs} runs, medians\n"
    )
    print("| | CPU s | x typer | peak MiB |\n|---|---|---|---|")
    for name, measured in costs.items():
        cpu = statistics.median(cost.cpu for cost in measured)
        ratio = statistics.median(a.cpu / b.cpu for a, b in zip(measured, base, strict=False))
        peak = statistics.median(cost.peak for cost in measured)
        print(f"| {name} | {cpu:.3f} | {ratio:.2f} | {peak:.0f} |")


if __name__ == "__main__":
    main()
