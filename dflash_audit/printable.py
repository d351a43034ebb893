"""Names out of a checkpoint can hold anything, and a line stays a line."""

import re
from typing import Final

LOG_COMMAND: Final = re.compile(r"##(?=\w*\[)")
"""What some CI systems take for a command wherever it stands in a line: `##[error]`, `##vso[…]`.

Source: GitHub's actions/runner, `ActionCommand.TryParse`; Azure Pipelines' and TeamCity's logging commands.
"""


MOST_DIGITS: Final = 40
"""More than any number has that a draft can mean: 2**63 has 19, a float with all of its digits 25."""

LONG_NUMBER: Final = re.compile(rf"[0-9]{{{MOST_DIGITS + 1},}}")


def with_short_numbers(text: str) -> str:
    """A sentence in which a number of very many digits is told by its first ones."""
    if len(text) <= MOST_DIGITS:
        return text
    return LONG_NUMBER.sub(lambda number: f"{number[0][:12]}... ({len(number[0]):,} digits)", text)


def printable(text: str) -> str:
    """`text` on one line, and no command to a CI system: what is not printable is written as an escape."""
    line = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return LOG_COMMAND.sub(r"\\x23#", line)
