"""Write docs/parity.md: how many recorded cases stand behind each class, method and layout.

    python scripts/parity_page.py > docs/parity.md

Counts the case folders of `fixtures/`; that the audit agrees with every one of
them is what `tests/parity` holds, and that the page is up to date as well.
"""

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from parity.case import Case, recorded  # noqa: E402

from dflash_audit.engines.sglang.draft import CLASSES  # noqa: E402
from dflash_audit.quantization import METHODS  # noqa: E402

Labels = Callable[[Case], Iterator[str]]

GROUPS = (
    "cases",
    "fuzz",
    "random",
    "random-vllm",
    "regressions",
    "rules",
    "published",
    "mended",
    "differences",
)

HEAD = """\
# Parity with the real engines

A verdict of this audit equals the engine's, or it is a bug. Each case in `fixtures/` holds a checkpoint's
layout and what the real SGLang 0.5.23 did with it (`sglang-0.5.23`), the same release with the change
that makes the next one (`sglang-next`), and, but for the largest and those of several ranks, the real vLLM
0.33.0 (`vllm-0.33.0`): the class, the stage and the tensor of a refusal, every parameter with its shape and
dtype, the name under which the quantization config was asked about each linear, where each tensor went, what
was dropped, cast, taken in another size, and what nothing filled. `tests/parity` holds the audit to all of
it, and to the verdicts, the lossy casts and the excused drops that follow from it.

This page is written by `scripts/parity_page.py`, and a test checks that it is up to date.
"""

MEASURED = """\
## Beyond the fixtures

| date | engine | cases | disagreements |
|---|---|---|---|
| 2026-11-29 | SGLang 0.5.23, transformers 5.19.0, compressed-tensors 0.18.0 | 31,626 on 1 to 8 ranks | 0 |
| 2026-11-29 | vLLM 0.33.0, transformers 5.20.2, compressed-tensors 0.17.0 | 651 on one rank | 0 |

`scripts/random_cases.py` makes such cases (`--for-vllm` those of the second row), `scripts/record_cases.py`
records them with a real SGLang, which runs on a CPU and is told that it is on an H200.

## Where the audit leaves the record on purpose

- A Nemotron 3.5 draft with attention sinks is refused by a server on default flags. The audit builds it and
  warns of the flag; its cases are recorded with the flag.
- The record replaces the rotary embedding and the check of a scheme against the card, which need a GPU. The
  audit follows the engine's source there: an unknown rope type and a method that the card cannot run are
  refused.
- A class or method that the audit does not replay is `skipped`, whatever the engine does.
- vLLM's early refusals are all of its config or its build; the audit says of them which is the class's and
  which the quantization config's. Its load reads every tensor before it places one, so that a record does
  not tell the tensor that it refuses.
- vLLM registers a softmax scale for each quantized attention, and an input scale for NVFP4 weights alone,
  that it takes away unread where nothing fills them: `missing` names them, and no rule minds them.
- Refusals after the load, while weights are repacked for a kernel, are not recorded and not replayed.
"""


def main() -> None:
    """Print the page."""
    cases = recorded(*GROUPS)
    parts = [
        HEAD,
        f"{len(cases)} cases are recorded, {sum(len(case.records) for case in cases)} records in all.\n",
        "## Draft classes\n",
        table("class", cases, classes, CLASSES),
        "## Quantization methods\n",
        table("method", cases, methods, METHODS),
        "## Layouts of compressed-tensors\n",
        table("layout", cases, layouts),
        MEASURED,
    ]
    print("\n".join(parts), end="")


def classes(case: Case) -> Iterator[str]:
    yield from {r["class"] for r in case.records.values() if r["class"]}


def methods(case: Case) -> Iterator[str]:
    yield from {r["quantization"] or "none (dense)" for r in case.records.values() if r["class"]}


def layouts(case: Case) -> Iterator[str]:
    """The layout of each config group that some engine accepts the config of."""
    if not any(r["quantization"] == "compressed-tensors" and built(r) for r in case.records.values()):
        return
    config = json.loads((case.folder / "config.json").read_text())
    declared = config.get("quantization_config") or config.get("compression_config")
    groups: Mapping[str, Any] = declared.get("config_groups", {})
    yield from {layout(group, declared) for group in groups.values()}


def layout(group: Mapping[str, Any], declared: Mapping[str, Any]) -> str:
    weights, inputs = group["weights"], group.get("input_activations")
    words = [
        str(group.get("format") or declared.get("format")),
        f"{weights.get('type', 'int')}{float(weights.get('num_bits', 8)):.0f}",
        str(weights.get("strategy") or "inferred"),
    ]
    words += ["asymmetric"] if weights.get("symmetric") is False else []
    order = weights.get("actorder")
    words += ["activation order"] if order in (True, "group", "dynamic") else []
    words += ["inputs dynamic" if inputs.get("dynamic") else "inputs static"] if inputs else []
    return ", ".join(words)


def built(record: Mapping[str, Any]) -> bool:
    return "parameters" in record


def table(title: str, cases: Sequence[Case], labels: Labels, names: Iterable[str] = ()) -> str:
    """How many cases have each label, how many of them an engine built; `names` are listed at any rate."""
    counts = Counter(label for case in cases for label in labels(case))
    builds = Counter(
        label for case in cases if any(map(built, case.records.values())) for label in labels(case)
    )
    rows = sorted({*counts, *names}, key=lambda name: (-counts[name], name))
    lines = [f"| {title} | cases | of them built |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| {name} | {counts[name]} | {builds[name]} |" for name in rows)]) + "\n"


if __name__ == "__main__":
    main()
