"""What an audit does grows as the checkpoint does, and no faster: steps are counted, for a clock can lie."""

import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from large_draft import write_large_draft

from dflash_audit.auditing import Request, audit
from dflash_audit.formats import FORMATS, render
from dflash_audit.formats.screen import Screen

TENSORS = 200
TIMES = 4
PER_FILE = 5
MOST_STEPS = 2600
"""What one more tensor may cost; it was 6,200 before what engines and rules share was worked out once."""


def steps(work: Callable[[], object]) -> Counter[str]:
    """File of the audit -> the lines of it that were run; a loop in one line counts each time round."""
    counted: Counter[str] = Counter()

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        file = frame.f_code.co_filename
        if "dflash_audit" not in file:
            return None
        counted[file.rpartition("dflash_audit/")[2]] += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return counted


@pytest.fixture(scope="module")
def drafts(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The same draft twice, the second four times as large."""
    scratch = tmp_path_factory.mktemp("load")
    return [write_large_draft(scratch / str(n), n, PER_FILE) for n in (TENSORS, TIMES * TENSORS)]


def test_an_audit(drafts: list[Path]) -> None:
    audit(Request(str(drafts[0])))  # what is imported and compiled once
    small, large = (steps(partial(audit, Request(str(draft)))) for draft in drafts)
    steep = [file for file in large if large[file] > 1.5 * TIMES * small[file] + 2000]
    assert steep == []
    assert large.total() < 1.2 * TIMES * small.total()
    assert large.total() - small.total() < MOST_STEPS * (TIMES - 1) * TENSORS


@pytest.mark.parametrize("name", FORMATS)
def test_a_format(drafts: list[Path], name: str) -> None:
    reports = [audit(Request(str(draft))) for draft in drafts]
    render(name, reports[0], Screen())
    small, large = (steps(partial(render, name, report, Screen())).total() for report in reports)
    assert large < 1.2 * TIMES * small + 2000
