"""Write docs/published.md: what the audit says of every published layout in the fixtures.

python scripts/published_page.py > docs/published.md
"""

import math
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from parity.case import Case, recorded  # noqa: E402

from dflash_audit.dtypes import BITS  # noqa: E402

HEAD = """\
# Published layouts

Drafts whose config and tensors are known from public records, at full size, as the real engines and this
audit see them (`fixtures/published`; each has a `source.md` that says what is quoted and what is inferred).
The weights are not part of them. A warning is listed with its rule. The class is SGLang's.

This page is written by `scripts/published_page.py`, and a test checks that it is up to date.

| layout | class | method | tensors | GB | sglang-0.5.23 | sglang-next | vllm-0.33.0 |
|---|---|---|---|---|---|---|---|
"""


def main() -> None:
    """Print the page."""
    print(HEAD + "\n".join(row(case) for case in recorded("published")))


def row(case: Case) -> str:
    with tempfile.TemporaryDirectory() as scratch:
        report = case.report(Path(scratch))
    size = sum(math.prod(shape) * BITS[dtype] / 8 for dtype, shape in case.tensors.values())
    engines = report["engines"]
    release = engines[0]
    cells = [
        case.folder.name,
        str(release["model_class"]),
        release["quantization"] or "dense",
        str(len(case.tensors)),
        f"{size / 1e9:.2f}",
        *(": ".join(words(report, engine)) for engine in engines),
    ]
    return f"| {' | '.join(cells)} |"


def words(report: dict[str, Any], engine: dict[str, Any]) -> Iterator[str]:
    yield engine["verdict"]
    wanted = {"fail": "error", "warn": "warning"}.get(engine["verdict"])
    found = [f for f in report["findings"] if (f["engine"], f["severity"]) == (engine["name"], wanted)]
    if found:
        yield f"{found[0]['rule']} on `{found[0]['subject']}`"


if __name__ == "__main__":
    main()
