"""The process that holds the real engine: a case folder a line in, a record a line out.

    SGLANG_PYTHON scripts/against_engine/worker.py CAPABILITY [--changed]

The first line out names the engine and the versions of what it stands on. With
`--changed` it is what `apply_change` of `record_cases.py` makes of the release.
"""

import json
import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from record_cases import CHANGED, apply_change, record_case, start

STANDS_ON = ("transformers", "compressed-tensors", "torch")


def main() -> None:
    # Standard output for the answers alone: what a library prints goes where errors go.
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def say(answer: dict[str, Any]) -> None:
        out.write(json.dumps(answer) + "\n")

    engine = start(int(sys.argv[1]))
    if "--changed" in sys.argv:
        if engine != CHANGED:
            raise SystemExit(f"{engine} is not what the change is written for")
        apply_change()
        engine = "sglang-next"
    versions = {"python": platform.python_version()} | {name: version(name) for name in STANDS_ON}
    say({"engine": engine, "versions": versions})
    for line in sys.stdin:
        say(record_case(Path(json.loads(line))))


if __name__ == "__main__":
    main()
