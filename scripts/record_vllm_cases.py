"""Record what the real vLLM does with the case folders: writes it into their expected.json.

    python scripts/record_vllm_cases.py fixtures/cases fixtures/fuzz

Run it with the Python of an environment that holds vllm==0.33.0; it needs gcc and no
GPU. Each case is written out as a checkpoint and handed to vLLM's own EngineArgs,
speculative config, quantization config, draft class, weight iterator and load_weights,
as `vllm serve TARGET --speculative-config ...` does. Records of other engines stay as
they are. Of a case's args.json count `--tp N` and `--gpu CARD`: vLLM lends a draft
neither the server's quantization nor its attention backend. A run records the cases of
one card. With `--check` nothing is written: what differs from the record is printed,
and the exit code is 1 if anything does.

The target is a small Qwen3 made to fit the draft (`against_engine/vllm_target.py`).
Replaced are: the platform (the card is claimed, over a stub of the driver's library),
the process groups, and the step after the load that fuses buffers on the GPU.

A record holds what `record_cases.py` says of one. A parameter's name is that in the state
dict; `asked` is the name under which the quantization config was asked about its module.
"""

import argparse
import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from against_engine.vllm_on_cpu import start  # noqa: E402
from against_engine.vllm_replay import record_vllm, with_sorted_sets  # noqa: E402
from record_cases import Record, card_of, write_lines  # noqa: E402

from dflash_audit.cards import CARDS, DEFAULT_CARD  # noqa: E402

RUNS_OWN = re.compile(re.escape(tempfile.gettempdir()) + r"/[^/ '\"]+/|0x[0-9a-f]+")
"""What an error tells of the run rather than of the draft: its folder, an address."""


NOT_LOOKED_AT = "failed to be inspected"
"""In an error: the file of the draft's class needs a GPU to be imported at all."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Record what the real vLLM does with case folders.")
    parser.add_argument("folders", nargs="+", type=Path, help="a case folder, or a folder of such")
    parser.add_argument("--gpu", default=DEFAULT_CARD, choices=CARDS, help="the card of the cases to record")
    parser.add_argument("--check", action="store_true", help="compare with the record, and write nothing")
    given = parser.parse_args()
    found = sorted(path.parent for folder in given.folders for path in folder.rglob("tensors.json"))
    cases = [case for case in found if card_of(case) == given.gpu]
    engine = start(CARDS[given.gpu])
    told, differing = 0, 0
    for case in cases:
        file = case / "expected.json"
        known = json.loads(file.read_text()) if file.exists() else {}
        if given.check and engine not in known:
            continue
        record = record_vllm(case)
        if NOT_LOOKED_AT in str(record["error"]):
            print(f"{case}: left out, for a class that this machine cannot import")
            continue
        told += 1
        if not given.check:
            file.write_text(write_lines(known | {engine: record}) + "\n")
        elif lines := differences(known[engine], record):
            differing += 1
            print(f"{case}:", *lines, sep="\n    ", flush=True)
    print(f"{told} cases, {differing} differ" if given.check else f"recorded {told} cases")
    return 1 if differing else 0


def differences(known: Record, record: Record) -> list[str]:
    """What of a record is another now, a line each."""
    return [
        f"{key}: {_shown(known.get(key))} is now {_shown(record.get(key))}"
        for key in sorted({*known, *record})
        if _told(known.get(key)) != _told(record.get(key))
    ]


def _told(value: Any) -> str:
    # Older records have the sets in errors in the order of their run.
    return with_sorted_sets(RUNS_OWN.sub("…", json.dumps(value, sort_keys=True)))


def _shown(value: Any) -> str:
    return json.dumps(value)[:300]


if __name__ == "__main__":
    sys.exit(main())
