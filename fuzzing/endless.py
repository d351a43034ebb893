"""The process that bounds patterns takes 20 ms to start, too slow for each input: none is started here."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from dflash_audit import bounded_match


class _AtOnce:
    """In place of the process: every pattern that would be given to it is endless."""

    def ask(self, pattern: str, name: str, how: bounded_match.How) -> None:
        return None

    def close(self) -> None:
        pass


@contextmanager
def endless_at_once() -> Iterator[None]:
    """One audit's matches, where a pattern that might not come to an end is endless at once."""
    with patch.object(bounded_match, "_Child", _AtOnce), bounded_match.own_budget():
        yield
