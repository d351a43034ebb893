"""Write docs/keys.md: the config keys that one engine reads and another does not.

python scripts/keys_page.py > docs/keys.md
"""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT)]

from dflash_audit.diagnosis import unread_keys, unread_keys_0_5_19, vllm_unread_keys  # noqa: E402
from dflash_audit.diagnosis.unread_keys import UnreadKey  # noqa: E402

TABLES: Final[tuple[tuple[str, Iterable[UnreadKey]], ...]] = (
    ("any SGLang here", unread_keys.UNREAD),
    ("vLLM 0.33.0", vllm_unread_keys.UNREAD),
    ("SGLang 0.5.19, and later versions do", unread_keys_0_5_19.UNREAD),
    ("any SGLang here, for which 0.5.19 has no other key either", unread_keys_0_5_19.INSTEAD),
)

HEAD = """\
# Keys that not every engine reads

A key of `config.json` that an engine does not read has no effect there, and no warning. The rule
[unread-key](rules/unread-key.md) tells of one only where its value makes a difference for the draft, which
the third column says in words: a key that says what the engine does anyway is no finding, and one that stands
twice in a table is another matter in each row. Where none reads a key, the last column says where its value
belongs, if anywhere.

This page is written by `scripts/keys_page.py` from the tables of the rule, and a test checks that it is up to
date.
"""


def main() -> None:
    """Print the page."""
    print(HEAD)
    print("\n\n".join("\n".join(_table(engine, rows)) for engine, rows in TABLES))


def _table(engine: str, rows: Iterable[UnreadKey]) -> Iterable[str]:
    yield f"## Not read by {engine}\n"
    yield "| key | what it does | when it matters | read by | what to do |"
    yield "|---|---|---|---|---|"
    for row in rows:
        reader = f"{row.reader.engine}: {row.reader.source}" if row.reader else "none"
        does = row.meaning.removeprefix("by ").removeprefix("which ")
        yield f"| `{row.key}` | {does} | {row.when} | {reader} | {row.mend} |"


if __name__ == "__main__":
    main()
