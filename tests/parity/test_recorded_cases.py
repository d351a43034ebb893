"""The audit against what the real engines did, on every recorded case."""

from typing import Any

import pytest
from parity.case import Case, recorded
from parity.comparison import ASPECTS, Compared
from report_schema import valid

CASES = recorded(
    "cases", "fuzz", "random", "random-vllm", "regressions", "rules", "published", "mended", "differences"
)


NOT_REPLAYED = frozenset(
    (
        "aux-layer-ids/bad-the-same",
        "kernel-limit/bad-laguna-gate",
        "kernel-limit/good-laguna-gate-dense",
        "kernel-limit/good-laguna-gate-fp8",
        "kernel-limit/good-laguna-gate-nvfp4",
        "published/laguna-s-2.1-dflash",
        "published/laguna-s-2.1-dflash-fp8",
        "published/laguna-s-2.1-dflash-int4",
        "published/laguna-s-2.1-dflash-nvfp4",
        "published/laguna-xs-2.1-dflash",
        "published/qwen3.8-27b-dflash2-quark-mxfp4",
        "published/tiny-laguna",
        "random/dflash-auto-round-01",
        "regressions/vllm-consolidated-beside-another",
    )
)
"""Cases with a record of vLLM, though the audit does not replay them there; docs/vllm.md says why."""


@pytest.fixture(
    scope="module", params=CASES, ids=lambda case: f"{case.folder.parent.name}/{case.folder.name}"
)
def case(request: pytest.FixtureRequest) -> Case:
    found: Case = request.param
    return found


@pytest.fixture(scope="module")
def report(case: Case, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return valid(case.report(tmp_path_factory.mktemp("case")))


@pytest.fixture(scope="module")
def compared(case: Case, report: dict[str, Any]) -> list[Compared]:
    """For each recorded engine, what it did and what the audit says that it does."""
    entries = {engine["name"]: engine for engine in report["engines"]}
    folder = case.folder
    skipped = {name for name in case.records if entries[name]["verdict"] == "skipped"}
    assert skipped == ({"vllm-0.33.0"} if f"{folder.parent.name}/{folder.name}" in NOT_REPLAYED else set())
    return [
        Compared(case, record, entries[name], report)
        for name, record in case.records.items()
        if name not in skipped
    ]


@pytest.mark.parametrize("aspect", ASPECTS)
def test_the_report_says_what_the_engines_did(aspect: str, compared: list[Compared]) -> None:
    assert {it.engine["name"]: [*ASPECTS[aspect](it)] for it in compared} == {
        it.engine["name"]: [] for it in compared
    }
