"""Patterns out of a checkpoint: what `re` means, and an end."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from materialize import materialize
from parity.case import FIXTURES, Case
from test_cli import run

from dflash_audit import bounded_match as bounded
from dflash_audit.bounded_match import How, NotAPattern, Runaway, Spent, bounded_match, own_budget, ways

ENDLESS = r"(((\w|\.)+)+)+!"
NAME = "layers.0.self_attn.qkv_proj"

PLAIN = [
    r".*self_attn\.(q|k|v)_proj$",
    r"(.*\.)?qkv_proj$",
    r"model\.layers\..*\.mlp\..*_proj",
    r"^(?!.*(gate|up)_proj).*$",
    "fc",
    "",
]
"""What exporters write: matched without a process."""

GUARDED = [ENDLESS, "(a*)*", "(?x)(a+) +", "(a+)(?#no)+", ".*.*.*.*.*.*.*.*x", "(a|b)?" * 60, "a?" * 200]
"""What might not come to an end, by a repeated group, flags, comments, or numbers."""


@pytest.mark.parametrize("pattern", PLAIN)
def test_an_exporters_pattern_starts_no_process(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "_Child", None)
    with own_budget():
        assert bounded_match(pattern, NAME) == (re.match(pattern, NAME) is not None)


@pytest.mark.parametrize("pattern", GUARDED)
def test_what_might_not_end_is_told_from_the_rest(pattern: str) -> None:
    assert ways(pattern, len(NAME)) > bounded.MOST_WAYS


@pytest.mark.parametrize(
    ("pattern", "name", "how"),
    [
        (r"(\w+\.)*qkv_proj", NAME, "match"),
        (r"(\w+\.)*qkv", NAME, "match"),
        (r"(\w+\.)*qkv", NAME, "fullmatch"),
        (r"(?i)LAYERS.*", NAME, "fullmatch"),
        (r"(q|k)v*_(proj)+", NAME, "search"),
        (r"(?i)NOWHERE.*", NAME, "search"),
        ("(a+)+$", "b", "match"),
        ("(é|\\.)+", "é.é\ud800", "match"),
    ],
)
def test_the_process_means_what_re_means(pattern: str, name: str, how: How) -> None:
    assert ways(pattern, len(name)) > bounded.MOST_WAYS
    with own_budget():
        assert bounded_match(pattern, name, how) == (getattr(re, how)(pattern, name) is not None)


@pytest.mark.parametrize(
    ("pattern", "syntax"),
    [
        ("[", True),
        ("(a+)+[", True),
        ("a{99999999999}", False),
        ("(a+)+b{99999999999}", False),
        ("(" * 5000 + ")" * 5000, False),
    ],
)
def test_what_is_no_pattern(pattern: str, syntax: bool) -> None:
    with own_budget(), pytest.raises(NotAPattern) as raised:
        bounded_match(pattern, NAME)
    assert raised.value.syntax is syntax


def test_a_match_ends_after_its_time() -> None:
    with own_budget():
        with pytest.raises(Runaway):
            bounded_match(ENDLESS, NAME)
        spent = os.times().children_user
        with pytest.raises(Runaway):  # once is enough, whatever the name
            bounded_match(ENDLESS, NAME + "x")
        assert os.times().children_user == spent
        assert bounded_match(r"(\w+\.)*qkv_proj", NAME)  # and the others still have theirs


def test_all_matches_end_after_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "ALL_SECONDS", 3 * bounded.ASKING)
    with own_budget(), pytest.raises(Spent):
        for number in range(100):
            bounded_match(f"(a+)+{number}", "b")


def test_the_process_ends_with_the_audit() -> None:
    code = (
        "import os, subprocess, sys\n"
        "from dflash_audit.bounded_match import bounded_match, own_budget\n"
        "with own_budget():\n"
        "    bounded_match('(a+)+', 'b')\n"
        "    print(open(f'/proc/self/task/{os.getpid()}/children').read().strip())\n"
        "print(open(f'/proc/self/task/{os.getpid()}/children').read().strip())\n"
    )
    if not Path("/proc/self/task").exists():
        pytest.skip("no list of a process's children")
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    during, after = said.split("\n")[:2]
    assert during.isdigit()
    assert after == ""


ATOMS = st.sampled_from(["a", "b", ".", r"\.", "[ab]", "[^.]", "(a|b)", "(ab)", "(?:a|ab)", "^", "$"])
SUFFIXES = st.sampled_from(["", "", "?", "*", "+", "*?", "{1,2}"])


@settings(deadline=None)
@given(
    st.lists(st.tuples(ATOMS, SUFFIXES), max_size=6),
    st.text("ab.", max_size=12),
    st.sampled_from(get_args(How)),
)
def test_as_re(parts: list[tuple[str, str]], name: str, how: How) -> None:
    pattern = "".join(atom + suffix for atom, suffix in parts)
    if ways(pattern, len(name)) > bounded.MOST_WAYS:
        return
    try:
        theirs: bool | None = getattr(re, how)(pattern, name) is not None
    except re.error:
        theirs = None
    try:
        ours: bool | None = bounded_match(pattern, name, how)
    except NotAPattern:
        ours = None
    assert ours == theirs


def test_the_program_ends_a_match_by_its_own_limit(tmp_path: Path) -> None:
    draft = materialize(FIXTURES / "rules" / "endless-pattern" / "bad-doubly-repeated", tmp_path)
    spent = os.times().children_user
    done = run(str(draft), "--json")
    assert done.returncode == 1
    assert "endless-pattern" in {finding["rule"] for finding in json.loads(done.stdout)["findings"]}
    assert 4 < os.times().children_user - spent < 30


def test_the_report_tells_of_a_hang_once(tmp_path: Path) -> None:
    report = Case(FIXTURES / "rules" / "endless-pattern" / "bad-doubly-repeated").report(tmp_path)
    (engine,) = (each for each in report["engines"] if each["name"] == "sglang-next")
    assert (engine["verdict"], engine["refusal"]["stage"]) == ("fail", "build")
    errors = [each["rule"] for each in report["findings"] if each["severity"] == "error"]
    # The release asks about a bare `qkv_proj`, too short a name to hang on.
    assert errors.count("endless-pattern") == 2  # vLLM asks by the whole name as well
    assert "refused-build" not in errors
