"""Write docs/rules/: a page for each rule, from the docstring of its file, and a list of them.

python scripts/rule_pages.py docs/rules
"""

import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from dflash_audit.rules import RULES, page, title  # noqa: E402


def pages() -> Iterator[tuple[str, str]]:
    """Yield (file name, text) of every page."""
    for rule in RULES:
        yield f"{rule}.md", page(rule) + "\n"
    rows = "\n".join(f"- [{rule}]({rule}.md): {title(rule)}" for rule in RULES)
    yield "README.md", f"# Rules\n\nWritten by `scripts/rule_pages.py` from the rules themselves.\n\n{rows}\n"


def main() -> None:
    """Write the pages into the folder, and remove those of rules that are gone."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    written = dict(pages())
    for old in folder.glob("*.md"):
        if old.name not in written:
            old.unlink()
    for name, text in written.items():
        (folder / name).write_text(text)


if __name__ == "__main__":
    main()
