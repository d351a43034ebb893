"""Where a report is shown."""

from typing import NamedTuple


class Screen(NamedTuple):
    """Columns of the screen, whether it shows colours, and whether the load plan is wanted too."""

    width: int = 80
    color: bool = False
    verbose: bool = False
