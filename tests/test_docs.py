"""The written pages say what the code says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from dflash_audit.cli import COMMANDS
from dflash_audit.rules import RULES, page

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "scripts"))

from corpus_block import BEGIN, END  # noqa: E402
from parity_page import GROUPS  # noqa: E402

SECTIONS = ["## Why it matters", "## Example", "## How to fix"]


@pytest.mark.parametrize(
    ("script", "written"),
    [
        ("parity_page.py", "parity.md"),
        ("published_page.py", "published-drafts.md"),
        ("format_page.py", "formats.md"),
        ("keys_page.py", "keys.md"),
    ],
)
def test_pages_are_up_to_date(script: str, written: str) -> None:
    command = [sys.executable, str(ROOT / "scripts" / script)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == (ROOT / "docs" / written).read_text()


def test_the_size_of_the_corpus_is_up_to_date(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    written = (ROOT / "docs" / "how-it-knows.md").read_text()
    before, begin, rest = written.partition(BEGIN)
    page.write_text(f"{before}{begin}stale{END}{rest.partition(END)[2]}")
    subprocess.run([sys.executable, str(ROOT / "scripts" / "corpus_block.py"), str(page)], check=True)
    assert page.read_text() == written
    assert begin and re.search(r"^\| together \| \d{3,} \|", written, re.MULTILINE)


def test_every_recorded_case_is_counted() -> None:
    folders = (path.relative_to(ROOT / "fixtures") for path in (ROOT / "fixtures").rglob("expected.json"))
    assert {path.parts[0] for path in folders} == {*GROUPS}


def test_rule_pages_are_up_to_date(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "scripts" / "rule_pages.py"), str(tmp_path)]
    subprocess.run(command, check=True)
    fresh = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert fresh == {path.name: path.read_text() for path in (ROOT / "docs" / "rules").iterdir()}


def test_the_layout_names_every_module_at_the_top() -> None:
    layout = (ROOT / "CONTRIBUTING.md").read_text().partition("## The line of flow")[2].partition("\n## ")[0]
    package = ROOT / "dflash_audit"
    there = {path.name for path in package.glob("*.py")}
    there |= {f"{path.parent.name}/" for path in package.glob("*/__init__.py")}
    assert {name for name in there if f"`{name}`" not in layout} == set()


@pytest.mark.parametrize("rule", RULES)
def test_a_rules_page_has_its_sections(rule: str) -> None:
    assert re.findall(r"^## .*$", page(rule), re.MULTILINE) == SECTIONS
    assert page(rule).splitlines()[2].endswith(".")


def test_the_readme_lists_every_rule() -> None:
    readme = (ROOT / "README.md").read_text()
    assert [rule for rule in RULES if f"`{rule}`" not in readme] == []


def test_the_readme_shows_every_command() -> None:
    readme = (ROOT / "README.md").read_text()
    shown = {*re.findall(r"^dflash-audit ([a-z]+)\b", readme, re.MULTILINE), "audit", "schema"}
    assert {*COMMANDS} - shown == set()


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", path.read_text()):
        if re.match(r"\w+:", link):
            continue
        file, _, heading = link.partition("#")
        found = (path.parent / file) if file else path
        assert found.exists(), link
        if heading:
            headings = re.findall(r"^#+ (.*)$", found.read_text(), re.MULTILINE)
            assert heading in {re.sub(r"[^\w-]", "", each.lower().replace(" ", "-")) for each in headings}, (
                link
            )


def test_the_index_lists_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    listed = re.findall(r"^\| \[(.*?)\]\(\1\)", index, re.MULTILINE)
    assert sorted(listed) == [path.name for path in PAGES[2:] if path.name != "README.md"]
