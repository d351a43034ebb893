"""What is worked out of an object once, and kept as long as the object."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Protocol, TypeVar


class Remembers(Protocol):
    """An object that is complete, and keeps what was worked out of it: function -> its answer."""

    @property
    def remembered(self) -> dict[Callable[..., Any], Any]: ...


Of = TypeVar("Of", bound=Remembers)
Answer = TypeVar("Answer")


def once(ask: Callable[[Of], Answer]) -> Callable[[Of], Answer]:
    """`ask`, which looks at an object the first time and answers the same for it ever after."""

    @wraps(ask)
    def asked(of: Of) -> Answer:
        if ask not in of.remembered:
            of.remembered[ask] = ask(of)
        answer: Answer = of.remembered[ask]
        return answer

    return asked
