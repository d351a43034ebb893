"""The process that holds the real engine: a case folder a line in, a record a line out.

    PYTHON scripts/against_engine/worker.py KIND CAPABILITY

KIND is sglang or vllm, a release that PYTHON's environment holds, or sglang-next, which is
what `apply_change` of `record_cases.py` makes of SGLang's. The first line out names the
engine and the versions of what it stands on.
"""

import json
import os
import platform
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT), str(ROOT / "tests")]

import record_cases  # noqa: E402

from against_engine import vllm_on_cpu  # noqa: E402
from against_engine.vllm_replay import record_vllm  # noqa: E402

STANDS_ON = ("transformers", "compressed-tensors", "torch")

Record = record_cases.Record


def start_changed(capability: int) -> str:
    engine = record_cases.start(capability)
    if engine != record_cases.CHANGED:
        raise SystemExit(f"{engine} is not what the change is written for")
    record_cases.apply_change()
    return "sglang-next"


KINDS: Final[Mapping[str, tuple[Callable[[int], str], Callable[[Path], Record]]]] = {
    "sglang": (record_cases.start, record_cases.record_case),
    "sglang-next": (start_changed, record_cases.record_case),
    "vllm": (vllm_on_cpu.start, record_vllm),
}
"""Kind -> how it starts on a card, giving its name, and how it records a case."""


def main() -> None:
    # Standard output for the answers alone: what a library prints goes where errors go.
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def say(answer: dict[str, Any]) -> None:
        out.write(json.dumps(answer) + "\n")

    start, record = KINDS[sys.argv[1]]
    engine = start(int(sys.argv[2]))
    versions = {"python": platform.python_version()} | {name: version(name) for name in STANDS_ON}
    say({"engine": engine, "versions": versions})
    for line in sys.stdin:
        say(record(Path(json.loads(line))))


if __name__ == "__main__":
    main()
