"""Measure audits of 1,000, 10,000 and 100,000 tensors as whole processes, and print Markdown tables.

    python scripts/bench_load.py [--runs 5] [--sizes 1000 10000 100000] [--sglang-python PYTHON]

The draft is that of `large_draft`: two hundred tensors a file, a tenth of them its own, on disk and in
a repo of a Hub on 127.0.0.1. Commands run in turn (A B C A B C ...) after one run each that does not
count; a figure is the median over the runs, of CPU time (user and system, children too) and of peak memory.
Beside the audit of a folder, a bare Python and `safetensors.safe_open` read the same headers; beside that of
a repo, `huggingface_hub.get_safetensors_metadata`. With a Python that holds sglang==0.5.23 the real engine
builds and loads the same draft, out of one file, twice in a process: as the release, and with the change of
`sglang-next`. Below the table stands how each audit grows between two sizes.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Mapping
from datetime import date
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Final

from bench import Cost, in_turn
from large_draft import ROOT, tensors_of, write_large_draft

sys.path.insert(0, str(ROOT / "tests"))

from hub.fake_hub import FakeHub, serve

NAME: Final = "org/draft"

LOCAL: Final = "`dflash-audit DIR --json`"
REMOTE: Final = "`dflash-audit REPO --json`"
AUDITS: Final = (LOCAL, REMOTE)

BARE: Final = """
import json, pathlib, sys
found = {}
for path in pathlib.Path(sys.argv[1]).glob("*.safetensors"):
    with open(path, "rb") as file:
        found.update(json.loads(file.read(int.from_bytes(file.read(8), "little"))))
print(len(found))
"""
SAFE_OPEN: Final = """
import pathlib, sys
from safetensors import safe_open
found = {}
for path in pathlib.Path(sys.argv[1]).glob("*.safetensors"):
    with safe_open(path, "np") as file:
        for name in file.keys():
            part = file.get_slice(name)
            found[name] = part.get_dtype(), part.get_shape()
print(len(found))
"""
METADATA: Final = """
import sys
from huggingface_hub import get_safetensors_metadata
print(len(get_safetensors_metadata(sys.argv[1]).weight_map))
"""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    options.add_argument("--sglang-python", help="a Python that holds sglang==0.5.23")
    given = options.parse_args()
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores at the start"
    print(f"{date.today()}, Python {platform.python_version()}, {load}, {given.runs} runs, medians")
    with tempfile.TemporaryDirectory() as scratch:
        costs = {size: _measure(Path(scratch) / str(size), size, given) for size in given.sizes}
    _print(costs)
    for name in AUDITS:
        for small, large in pairwise(sorted(costs)):
            print(f"\n{name}: {_growth(small, costs[small][name], large, costs[large][name])}")


def _measure(scratch: Path, size: int, given: argparse.Namespace) -> Mapping[str, list[Cost]]:
    draft = write_large_draft(scratch / "draft", size)
    audit = [sys.executable, "-m", "dflash_audit"]
    local = {
        LOCAL: [*audit, str(draft), "--json", "--fail-on", "never"],
        "bare Python that parses the headers": [sys.executable, "-c", BARE, str(draft)],
        "`safetensors.safe_open` of each file": [sys.executable, "-c", SAFE_OPEN, str(draft)],
    }
    remote = {
        REMOTE: [*audit, f"hf://{NAME}", "--json", "--fail-on", "never"],
        "`huggingface_hub.get_safetensors_metadata`": [sys.executable, "-c", METADATA, NAME],
    }
    hub = FakeHub()
    hub.repo(NAME, {path.name: path.read_bytes() for path in draft.iterdir()})
    with serve(hub):
        os.environ |= {"HF_ENDPOINT": hub.url, "HF_HOME": str(scratch / "cache")}
        costs = in_turn({**local, **remote}, given.runs)
    if given.sglang_python:
        case = scratch / "real" / "case"
        case.mkdir(parents=True)
        (case / "config.json").write_text((draft / "config.json").read_text())
        (case / "tensors.json").write_text(json.dumps(tensors_of(size)))
        record = [given.sglang_python, str(ROOT / "scripts" / "record_cases.py"), str(case.parent)]
        costs |= in_turn({"SGLang 0.5.23 itself, twice: import, build, load": record}, given.runs)
    return costs


def _print(costs: Mapping[int, Mapping[str, list[Cost]]]) -> None:
    print("\n| | " + " | ".join(f"{size:,} tensors" for size in costs) + " |")
    print("|---|" + "---|" * len(costs))
    for name in next(iter(costs.values())):
        cells = [_cell(of_size[name]) for of_size in costs.values()]
        print(f"| {name} | " + " | ".join(cells) + " |")


def _cell(costs: list[Cost]) -> str:
    middle = _median(costs)
    return f"{middle.cpu:.2f} s, {middle.peak:,.0f} MiB"


def _growth(small: int, of_small: list[Cost], large: int, of_large: list[Cost]) -> str:
    before, after, more = _median(of_small), _median(of_large), large - small
    cpu, peak = after.cpu - before.cpu, after.peak - before.peak
    return (
        f"from {small:,} to {large:,} tensors time grows by {after.cpu / before.cpu:.1f}, memory by"
        f" {peak:.0f} MiB ({peak * 1024 / more:.1f} KiB a tensor): what grows is {1000 * cpu / more:.3f} ms"
        " a tensor"
    )


def _median(costs: list[Cost]) -> Cost:
    return Cost(median(cost.cpu for cost in costs), median(cost.peak for cost in costs))


if __name__ == "__main__":
    main()
