"""The tensors of a checkpoint, and what was worked out of them."""

from collections.abc import Callable, Iterable
from typing import Any

from dflash_audit.sources.checkpoint import Tensor


class Tensors(tuple[Tensor, ...]):
    """Tensors in the order in which an engine reads them: the same for every engine, list and rule.

    What is asked of all of them, which may be a hundred thousand, is worked out once.
    """

    remembered: dict[Callable[..., Any], Any]

    def __new__(cls, tensors: Iterable[Tensor]) -> "Tensors":
        made = super().__new__(cls, tensors)
        made.remembered = {}
        return made

    # What is remembered stays here.
    def __reduce__(self) -> tuple[type["Tensors"], tuple[tuple[Tensor, ...]]]:
        return Tensors, (tuple(self),)


def as_tensors(tensors: Iterable[Tensor]) -> Tensors:
    """Any tensors as `Tensors`; those that are so already remember what they know."""
    return tensors if isinstance(tensors, Tensors) else Tensors(tensors)
