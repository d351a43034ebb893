"""Write the tables of docs/how-it-knows.md that say how much is recorded of the real engine.

    python scripts/corpus_block.py docs/how-it-knows.md

Counts what scripts/parity_page.py counts, and what other tests are held to.
"""

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Final

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "scripts"), str(ROOT / "tests")]

from parity.case import recorded  # noqa: E402
from parity_page import GROUPS  # noqa: E402
from reference.families import FAMILIES  # noqa: E402

BEGIN: Final = "<!-- written by scripts/corpus_block.py -->\n"
END: Final = "<!-- end -->\n"

WHAT: Final = {
    "cases": "one layout or one fault each, written by hand or by llm-compressor",
    "fuzz": "changes of those, at random",
    "random": "drafts at random, of every class, method and size",
    "random-vllm": "such drafts as vLLM has in mind: configs of speculators, own heads, EAGLE's names",
    "regressions": "those on which audit and engine once differed",
    "rules": "for each rule drafts that it is about, and drafts that look alike and are not",
    "published": "layouts of drafts that are known from public records",
    "mended": "drafts that `dflash-audit fix` changed",
    "differences": "what SGLang and vLLM take in different ways, a fault or a liberty each",
}
"""Group of `fixtures/` -> what its cases are."""


def main() -> None:
    """Put the tables into the page that is named, in place of those that it has."""
    page = Path(sys.argv[1])
    before, _, rest = page.read_text().partition(BEGIN)
    page.write_text(
        before + BEGIN + "\n".join(["", *cases(), "", *others(), ""]) + END + rest.partition(END)[2]
    )


def cases() -> list[str]:
    """How many cases each group has, and how many records there are of each engine."""
    found = {group: recorded(group) for group in GROUPS}
    engines = Counter(engine for group in found.values() for case in group for engine in case.records)
    rows = [f"| `fixtures/{group}` | {len(found[group])} | {WHAT[group]} |" for group in GROUPS]
    total = sum(map(len, found.values()))
    told = ", ".join(f"{count} of `{engine}`" for engine, count in sorted(engines.items()))
    return ["| recorded cases | | |", "|---|---|---|", *rows, f"| together | {total} | records: {told} |"]


def others() -> list[str]:
    """What is recorded beside the layouts."""
    fixtures = ROOT / "fixtures"
    configs = json.loads((ROOT / "tests" / "hf_config" / "cases.json").read_text())["cases"]
    fills = json.loads((fixtures / "fills.json").read_text())
    linears = [*(fixtures / "unpacked" / "linears").iterdir()]
    rows = [
        ("what its config classes make of a config.json", f"{len(configs)} configs", "tests/hf_config"),
        ("what its loaders leave in every parameter, bit for bit", f"{len(fills)} drafts", "tests/warmup"),
        (
            "what its quantized linears compute, and whom a NaN reaches",
            f"{len(linears)} linears",
            "tests/unpack",
        ),
        ("what its draft classes compute, stage by stage", f"{len(FAMILIES)} drafts", "tests/reference"),
    ]
    head = ["| recorded of the engine beside them | | held to it |", "|---|---|---|"]
    return [*head, *(f"| {what} | {how_many} | `{tests}` |" for what, how_many, tests in rows)]


if __name__ == "__main__":
    main()
