"""Where a report is shown."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Screen:
    """Columns of the screen, whether it shows colours, and whether the load plan is wanted too."""

    width: int = 80
    color: bool = False
    verbose: bool = False
