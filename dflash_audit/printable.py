"""Names out of a checkpoint can hold anything, and a line stays a line."""

import re
from typing import Final

LOG_COMMAND: Final = re.compile(r"##(?=\w*\[)")
"""What some CI systems take for a command wherever it stands in a line: `##[error]`, `##vso[…]`.

Source: GitHub's actions/runner, `ActionCommand.TryParse`; Azure Pipelines' and TeamCity's logging commands.
"""


def printable(text: str) -> str:
    """`text` on one line, and no command to a CI system: what is not printable is written as an escape."""
    line = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return LOG_COMMAND.sub(r"\\x23#", line)
