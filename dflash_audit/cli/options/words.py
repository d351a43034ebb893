"""What a user writes, and how it is told that it is wrong."""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import typer

from dflash_audit import usage

T = TypeVar("T")
P = ParamSpec("P")


def told(read: Callable[P, T]) -> Callable[P, T]:
    """What reads a user's words, whose complaint becomes a usage error."""

    @functools.wraps(read)
    def reads(*given: P.args, **named: P.kwargs) -> T:
        try:
            return read(*given, **named)
        except usage.WrongUsage as error:
            raise typer.BadParameter(str(error)) from None

    return reads


known = told(usage.known)
given = told(usage.given)
