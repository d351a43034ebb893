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

RUNS = ROOT / "docs" / "parity-runs"
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
layout and what the real SGLang did with it, as released (`sglang-0.5.19`, `sglang-0.5.23`) and with the
change that makes the next one (`sglang-next`), and what the real vLLM 0.33.0 did (`vllm-0.33.0`): the class,
the stage and the tensor of a refusal, every parameter with its shape and dtype, the name under which the
quantization config was asked about each linear, where each tensor went, what was dropped, cast, taken in
another size, and what nothing filled. `tests/parity` holds the audit to all of it, and to the verdicts, the
lossy casts and the excused drops that follow from it.

This page is written by `scripts/parity_page.py`, and a test checks that it is up to date.
"""

MEASURED = """\
## Beyond the fixtures

Random drafts of every family, method and fault, made by `scripts/random_cases.py` and asked by
`scripts/random_parity.py` (`make parity`, `make parity-vllm`), on a CPU that is told which card it is. For
vLLM they are of families and configs that it reads in a way of its own, most of them such as it builds, and
a third beside a target of another depth, width or vocabulary. Each run left a record in `docs/parity-runs`;
a case is not compared where the audit says that it does not replay it.

| release | on | date | cards | ranks | cases | compared | disagreements |
|---|---|---|---|---|---|---|---|
{runs}

What differed on 2026-11-30 is mended and kept in `fixtures/regressions`, where it agrees:
`embedding-under-two-names`, `target-layers-beyond-64-bits` and `ct-float4-that-is-no-nvfp4` (of a run that
ended before it was counted) were faults of the audit, `gptq-order-by-a-rule` one of the recorder;
`vllm-lilicorr-width-null`, `vllm-beam-reduced-vocabulary` and `vllm-laguna-rope-without-base` are of three
runs against vLLM, one each. A fourth of 3,500 drafts, after the last of them was mended, had none.

0.5.19 ran from its own wheel, with the transformers and tokenizers that it names, over the torch and the
kernels of 0.5.23: of the kernels a build and a load call none.

Before these records were kept, on 2026-11-29, 31,626 cases of an earlier generator on 1 to 8 ranks showed no
disagreement with 0.5.23 either. On the same day 651 cases of an earlier `scripts/random_cases.py --for-vllm`,
on one rank, showed none with the real vLLM 0.33.0.

"""

LIMITS = """\
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
- vLLM picks an attention backend by the card. The audit takes for granted that there is one for the draft's
  heads and cache, which on a T4 need not be so.
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
        MEASURED.format(runs="\n".join(measured())),
        LIMITS,
    ]
    print("\n".join(parts), end="")


def measured() -> Iterator[str]:
    """A row for each engine and set of versions: what all its runs compared."""
    runs = [json.loads(path.read_text()) for path in sorted(RUNS.glob("*.json"))]
    rows: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for run in runs:
        on = ", ".join(f"{name} {run['versions'][name]}" for name in ("transformers", "compressed-tensors"))
        for engine in run["engines"]:
            rows.setdefault((engine, on, run["date"]), []).append(run)
    for (engine, on, day), told in rows.items():
        cards = ", ".join(sorted({run["card"] for run in told}))
        ranks = ", ".join(sorted({count for run in told for count in run["ranks"]}, key=int))
        counts = [run["engines"][engine] for run in told]
        compared = sum(count["compared"] for count in counts)
        disagreements = sum(count["disagreements"] for count in counts)
        cases = sum(run["cases"] for run in told)
        yield f"| {engine} | {on} | {day} | {cards} | {ranks} | {cases:,} | {compared:,} | {disagreements} |"


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
