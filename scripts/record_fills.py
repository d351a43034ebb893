"""Record what SGLang's loaders leave in the parameters of the case folders: writes fixtures/fills.json.

    python scripts/record_fills.py fixtures/cases fixtures/fuzz fixtures/random fixtures/regressions

Run it as `record_cases.py`, whose words and replacements it shares. Each case is written out with
real values (`tests/real_values.py`), built by SGLang, and every parameter is poisoned before the load
as the warm-up poisons it: with NaN, or 0xA5 in each byte of an integer. Only those stay as they were
built that have a right value of their own; what merely got memory is not taken for one, as that is
filled with NaN while SGLang builds. After load_weights, and before process_weights_after_loading,
every parameter's bytes are hashed, the poison that is left included.

The record: case -> engine -> module -> parameter -> the first 8 hex digits of the SHA-256. Cases that
an engine refuses are left out. Where both engines leave the same, the second says "same".
"""

import argparse
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from record_cases import Record, Replay, has_default, record_all, record_case

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from real_values import materialize_real  # noqa: E402

TARGET = ROOT / "fixtures" / "fills.json"
POISON_BYTE = 0xA5
DIGITS = 8


class FillReplay(Replay):
    """A replay that poisons the parameters of a built draft, and records what the load leaves in them."""

    model: Any = None

    def _record_build(self, model: Any, asked: dict[int, str]) -> None:
        super()._record_build(model, asked)
        self.model = model
        schemes = {p["name"]: p["scheme"] or "" for p in self.record["parameters"]}
        for name, parameter in model.named_parameters():
            # Whatever a config says of act-order, an index that nobody set is no value to keep.
            if not (has_default(name, schemes[name], act_order=True) and bool(parameter.isfinite().all())):
                poison(parameter.data)

    def _record_load(self, quantization_config: dict[str, Any]) -> None:
        modules: dict[str, dict[str, str]] = {}
        for name, parameter in self.model.named_parameters():
            module, _, leaf = name.rpartition(".")
            modules.setdefault(module, {})[leaf] = digest(parameter.data)
        self.record["held"] = modules


def poison(data: Any) -> None:
    import torch

    if data.is_floating_point():
        data.fill_(float("nan"))
    elif data.numel():
        data.reshape(-1).view(torch.uint8).fill_(POISON_BYTE)


def digest(data: Any) -> str:
    import torch

    raw = data.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    return hashlib.sha256(raw).hexdigest()[:DIGITS]


def record_fill(case: Path) -> Record:
    import torch

    torch.use_deterministic_algorithms(True)  # which fills new memory with NaN
    return record_case(case, FillReplay, materialize_real)


def main() -> None:
    parser = argparse.ArgumentParser(description="Record what SGLang's loaders leave in the parameters.")
    parser.add_argument("folders", nargs="+", type=Path, help="a folder of case folders")
    folders = parser.parse_args().folders
    cases = sorted(path.parent for folder in folders for path in folder.rglob("tensors.json"))
    fills: dict[str, dict[str, Any]] = {}
    for case, records in record_all(cases, record_fill):
        held = {engine: record["held"] for engine, record in records.items() if "held" in record}
        if len(held) == 2 and len({json.dumps(modules) for modules in held.values()}) == 1:
            held |= {"sglang-next": "same"}
        if held:
            fills[str(case.resolve().relative_to(TARGET.parent))] = held
    lines = [f"{json.dumps(case)}: {json.dumps(held, separators=(',', ':'))}" for case, held in fills.items()]
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"recorded {len(fills)} cases")


if __name__ == "__main__":
    main()
