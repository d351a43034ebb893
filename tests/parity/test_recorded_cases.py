"""The audit against what the real engines did, on every recorded case."""

from pathlib import Path

import pytest
from parity.case import Case, recorded
from parity.comparison import ASPECTS, Compared
from report_schema import valid

CASES = recorded(
    "cases", "fuzz", "random", "random-vllm", "regressions", "rules", "published", "mended", "differences"
)


NOT_REPLAYED = frozenset(
    (
        "published/qwen3.8-27b-dflash2-quark-mxfp4",
        "random/dflash-auto-round-01",
        "regressions/vllm-consolidated-beside-another",
    )
)
"""Cases with a record of vLLM, though the audit does not replay them there; docs/vllm.md says why."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.folder.parent.name}/{case.folder.name}")
def test_the_report_says_what_the_engines_did(case: Case, tmp_path: Path) -> None:
    report = valid(case.report(tmp_path))
    entries = {engine["name"]: engine for engine in report["engines"]}
    skipped = {name for name in case.records if entries[name]["verdict"] == "skipped"}
    named = f"{case.folder.parent.name}/{case.folder.name}"
    assert skipped == ({"vllm-0.33.0"} if named in NOT_REPLAYED else set())
    compared = [
        Compared(case, record, entries[name], report)
        for name, record in case.records.items()
        if name not in skipped
    ]
    assert [
        f"{it.engine['name']}, {aspect}: {said}"
        for it in compared
        for aspect, find in ASPECTS.items()
        for said in find(it)
    ] == []
