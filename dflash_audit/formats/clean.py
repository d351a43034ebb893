"""Text out of a checkpoint, made safe for a terminal."""

from typing import Final

from dflash_audit.printable import printable

LONGEST: Final = 600
"""No sentence of the audit is longer; a name that is would fill the screen."""


def clean(text: str) -> str:
    """`text` made printable, and not endless."""
    shown = printable(text[:LONGEST])
    return shown if len(text) <= LONGEST else f"{shown}... ({len(text) - LONGEST:,} characters more)"
