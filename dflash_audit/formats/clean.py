"""Text out of a checkpoint, made safe for a terminal."""

from typing import Final

LONGEST: Final = 600
"""No sentence of the audit is longer; a name that is would fill the screen."""


def clean(text: str) -> str:
    """`text` on one line and not endless: whatever is not printable is written as an escape."""
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text[:LONGEST])
    return shown if len(text) <= LONGEST else f"{shown}... ({len(text) - LONGEST:,} characters more)"
