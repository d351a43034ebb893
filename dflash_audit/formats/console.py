"""Lines for a screen: folded at its width unless they will be copied, coloured if it shows colours."""

import io
import re
from collections.abc import Iterable
from typing import Final

from rich.console import Console, RenderableType

from dflash_audit.formats.screen import Screen

Part = RenderableType | tuple[str, str]
"""What is folded at the screen's width, or a text that is not, with its style."""

WIDEST: Final = 110
"""A longer line is hard to read, however wide the screen."""

LINE_COMMAND: Final = re.compile(r"^([ \t]*)::", flags=re.MULTILINE)
"""What GitHub takes for a command at the start of a line, to which folding may bring it.

Source: actions/runner, `ActionCommand.TryParseV2`, which skips white space first.
"""


def written(parts: Iterable[Part], screen: Screen) -> str:
    """The parts below one another."""
    file = io.StringIO()
    console = Console(
        file=file,
        width=min(screen.width, WIDEST),
        force_terminal=screen.color,
        no_color=not screen.color,
        highlight=False,
        markup=False,
        emoji=False,
    )
    for part in parts:
        if isinstance(part, tuple):
            text, style = part
            console.out(text, style=style or None, highlight=False)
        else:
            console.print(part)
    text = re.sub(r"[ \t]+$", "", file.getvalue(), flags=re.MULTILINE).rstrip("\n")
    return LINE_COMMAND.sub(r"\1\\x3a:", text)
