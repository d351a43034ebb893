"""One thing that a report becomes."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Output:
    """A report in the format of that name, in a `file`, or on stdout where there is none."""

    format: str
    file: str | None = None
