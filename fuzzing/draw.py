"""Choices out of the bytes of an input: a small change of the bytes is a small change of what is made."""

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Draw:
    """Reads an input from its front; a spent one gives zeros for ever."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        return max(0, len(self._data) - self._at)

    def number(self, size: int = 1) -> int:
        """An unsigned number of `size` bytes."""
        found = self._data[self._at : self._at + size]
        self._at += size
        return int.from_bytes(found, "little")

    def one_of(self, choices: Sequence[T]) -> T:
        return choices[self.number(1 if len(choices) <= 256 else 2) % len(choices)]

    def text(self) -> str:
        """A text of at most 255 bytes, broken UTF-8 as surrogates."""
        size = self.number()
        found = self._data[self._at : self._at + size]
        self._at += size
        return found.decode("utf-8", "surrogateescape")
