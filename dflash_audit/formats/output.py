"""One thing that a report becomes."""

from typing import NamedTuple


class Output(NamedTuple):
    """A report in the format of that name, in a `file`, or on stdout where there is none."""

    format: str
    file: str | None = None
