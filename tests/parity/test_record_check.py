"""What `record_vllm_cases.py --check` takes for another record."""

import sys
import tempfile
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))

from record_vllm_cases import differences  # noqa: E402

SCRATCH = tempfile.gettempdir()


@pytest.mark.parametrize(
    ("known", "now"),
    [
        ("has {'b.weight', 'a.weight'}", "has {'a.weight', 'b.weight'}"),
        (f"no file {SCRATCH}/tmp1x/draft", f"no file {SCRATCH}/tmp2y/draft"),
        ("one of {'dflash': <function f at 0x7fac>}", "one of {'dflash': <function f at 0x7fbd>}"),
    ],
)
def test_what_differs_from_run_to_run_is_no_difference(known: str, now: str) -> None:
    assert differences({"error": known}, {"error": now}) == []


@pytest.mark.parametrize(
    ("known", "now"),
    [
        ("has {'a.weight', 'b.weight'}", "has {'a.weight', 'c.weight'}"),
        ("has {'a.weight'} and no more", "has {'a.weight'} and another"),
        ("one of {'dflash': 1}", "one of {'dspark': 1}"),
        ("no file /elsewhere/a/draft", "no file /elsewhere/b/draft"),
    ],
)
def test_what_an_error_says_else_is_a_difference(known: str, now: str) -> None:
    (line,) = differences({"error": known, "stage": "load"}, {"error": now, "stage": "load"})
    assert line.startswith("error: ")
