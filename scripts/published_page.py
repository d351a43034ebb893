"""Write docs/published-drafts.md: what the audit says of every published layout in the fixtures.

python scripts/published_page.py > docs/published-drafts.md

Each layout is written out at its full size, as a sparse file, and audited.
"""

import math
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from parity.case import Case, recorded  # noqa: E402

from dflash_audit.dtypes import BITS  # noqa: E402
from dflash_audit.engines import ENGINES  # noqa: E402

SAYS: Final = {"pass": "serves", "warn": "serves, with a warning", "fail": "no", "skipped": "not replayed"}

REPORTS: Final = {
    "dflash-block7-markov-hybrid": "https://github.com/PrismML-Eng/llama.cpp/pull/122",
    "dflash-qwen3-8b-block7": "https://github.com/sgl-project/sglang/issues/40144",
    "dspark-qwen3-8b-block7-modelopt-nvfp4": "https://github.com/NVIDIA/Model-Optimizer/pull/2027",
    "mimo-dflash-sinks": "https://github.com/vllm-project/vllm/pull/46104",
    "minimax-m2-dflash": "https://github.com/z-lab/dflash/issues/156",
    "nemotron-3.5-lightning-dflash": "https://github.com/sgl-project/sglang/pull/33554",
    "nemotron-3.5-lightning-dspark": "https://github.com/sgl-project/sglang/pull/36186",
    "qwen3-8b-dflash-modelopt-nvfp4": "https://github.com/NVIDIA/Model-Optimizer/pull/2027",
    "qwen3-8b-dflash-modelopt-w4a16-nvfp4": "https://github.com/NVIDIA/Model-Optimizer/pull/2027",
    "qwen3.8-27b-dflash2-exp": "https://github.com/sgl-project/sglang/issues/40144",
    "qwen3.8-27b-dflash2-w4a16": "https://github.com/sgl-project/sglang/issues/39087",
    "specforge-tiny": "https://github.com/z-lab/dflash/issues/156",
    "tiny-dflash2-w4a16": "https://github.com/sgl-project/sglang/pull/39254",
}
"""Layout -> the public report of what its row says, or of what it rests on."""

HEAD = """\
# Published drafts

Drafts whose config and tensors are known from public records, dense and quantized, written out at full size
as sparse files and audited (`fixtures/published`; each has a `source.md` that says what is quoted and what
is inferred). The weights are not part of them. The class is SGLang's. What the real engines do with each is
recorded beside it, and the audit agrees with it wherever it replays the draft; where it does not, the record
alone speaks. (What is quoted of the Laguna drafts' configs has no `mlp_layer_types`, which vLLM's config
class then fills with mixtures of experts: its record is of this layout, and need not be of the draft. With
"dense" for each layer, and `re:.*fc$` ignored where they are quantized, the real vLLM loads all six.) A draft
that is known to serve in BF16 gets no alarm on the version that it is served by: `tests/test_published.py`
holds that.

This page is written by `scripts/published_page.py`, and a test checks that it is up to date.
"""


def main() -> None:
    """Print the page."""
    rows, counts = [], dict.fromkeys(ENGINES, 0)
    cases = recorded("published")
    for case in cases:
        with tempfile.TemporaryDirectory() as scratch:
            report = case.report(Path(scratch))
        rows.append(row(case, report))
        for engine in report["engines"]:
            counts[engine["name"]] += engine["verdict"] in ("pass", "warn")
    print(HEAD)
    served = ", ".join(f"{count} on {name}" for name, count in counts.items())
    print(f"Of {len(cases)} layouts serve: {served}.\n")
    records = Counter(name for case in cases for name in case.records)
    print(f"Records: {', '.join(f'{records[name]} of {name}' for name in ENGINES)}.\n")
    print(f"| layout | class | method | tensors | GB | {' | '.join(ENGINES)} | why | report |")
    print("|" + "---|" * (7 + len(ENGINES)))
    print("\n".join(rows))


def row(case: Case, report: dict[str, Any]) -> str:
    size = sum(math.prod(shape) * BITS[dtype] / 8 for dtype, shape in case.tensors.values())
    sglang = [engine for engine in report["engines"] if engine["name"].startswith("sglang-")]
    last = sglang[-1]
    link = REPORTS.get(case.folder.name)
    cells = [
        case.folder.name,
        str(last["model_class"]),
        last["quantization"] or "dense",
        str(len(case.tensors)),
        f"{size / 1e9:.2f}",
        *(says(case, engine) for engine in report["engines"]),
        "; ".join(whys(report)),
        f"[{'/'.join(link.split('/')[3:5])}#{link.rpartition('/')[2]}]({link})" if link else "",
    ]
    return f"| {' | '.join(cells)} |"


def says(case: Case, engine: dict[str, Any]) -> str:
    """The verdict, and of a draft that is not replayed what the engine itself did with it."""
    record = case.records.get(engine["name"])
    said = SAYS[engine["verdict"]]
    if engine["verdict"] != "skipped" or record is None:
        return said
    stage = record["stage"]
    return f"{said}; the engine loads it" if stage is None else f"{said}; the engine stops at its {stage}"


def whys(report: dict[str, Any]) -> Iterator[str]:
    """The first thing held against the draft, once for all the engines that share it."""
    found: dict[str, list[str]] = {}
    for engine in report["engines"]:
        wanted = {"fail": "error", "warn": "warning"}.get(engine["verdict"])
        told = [f for f in report["findings"] if (f["engine"], f["severity"]) == (engine["name"], wanted)]
        if told:
            found.setdefault(f"{told[0]['rule']} on `{told[0]['subject']}`", []).append(engine["name"])
    for why, engines in found.items():
        yield why if len(engines) == len(report["engines"]) else f"{', '.join(engines)}: {why}"


if __name__ == "__main__":
    main()
