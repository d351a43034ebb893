"""The written pages say what the code says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from dflash_audit.rules import RULES, page

ROOT = Path(__file__).parents[1]
SECTIONS = ["## Why it matters", "## Example", "## How to fix"]


@pytest.mark.parametrize(
    ("script", "written"),
    [
        ("parity_page.py", "parity.md"),
        ("published_page.py", "published-drafts.md"),
        ("format_page.py", "formats.md"),
    ],
)
def test_pages_are_up_to_date(script: str, written: str) -> None:
    command = [sys.executable, str(ROOT / "scripts" / script)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == (ROOT / "docs" / written).read_text()


def test_rule_pages_are_up_to_date(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "scripts" / "rule_pages.py"), str(tmp_path)]
    subprocess.run(command, check=True)
    fresh = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert fresh == {path.name: path.read_text() for path in (ROOT / "docs" / "rules").iterdir()}


@pytest.mark.parametrize("rule", RULES)
def test_a_rules_page_has_its_sections(rule: str) -> None:
    assert re.findall(r"^## .*$", page(rule), re.MULTILINE) == SECTIONS
    assert page(rule).splitlines()[2].endswith(".")


def test_the_readme_lists_every_rule() -> None:
    readme = (ROOT / "README.md").read_text()
    assert [rule for rule in RULES if f"`{rule}`" not in readme] == []
