"""How the replay stops where the engine's own expressions would."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dflash_audit.refusal import Refused


@contextmanager
def replayed(what: str) -> Iterator[None]:
    """Run the engine's expressions on JSON values of any type.

    The engine applies the same Python operators to the same values without
    looking at their types first, so what they raise here they raise there.
    AttributeError is left out: a missing attribute is refused where it is read.
    """
    try:
        yield
    except (TypeError, ValueError, ArithmeticError, LookupError) as error:
        raise Refused(f"{what}: {error or type(error).__name__}") from error


def as_table(value: Any, what: str) -> dict[Any, Any]:
    """The value itself, where the engine calls a dict's methods on it."""
    if not isinstance(value, dict):
        raise Refused(f"{what} is not an object: {value!r}")
    return value
