"""Regular expressions out of a checkpoint, with the meaning of `re` and an end.

A pattern can be written so that Python tries for hours (`(a+)+$`). One that cannot, by a bound on what it
may try, is matched here, as nearly every pattern is. Any other is matched in a process of its own, started
when the first one comes, which has a limited time of the CPU for each and for all of them.
"""

import json
import math
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final, Literal

How = Literal["match", "fullmatch", "search"]

MATCH_SECONDS: Final = 5
"""Most time of the CPU that one match in the process may take: what takes longer is endless."""

ALL_SECONDS: Final = 15
"""Most that all of an audit may take together."""

ASKING: Final = 0.0005
"""Seconds that it takes to ask the process."""

MOST_WAYS: Final = 10**6
"""Most ways of a match that is tried here: some 20 ms."""

MOST_WAYS_IN_ALL: Final = 5 * 10**8
"""Of all matches of an audit together: some 10 s at the very worst. Any more are for the process."""

WAYS_TO_COMPILE: Final = 300
"""What a letter of a pattern costs to compile, in ways of a match."""

KEPT: Final = 20_000
"""Most compiled patterns that are kept."""

MOST_CHOICES: Final = 100
"""Of repetitions, options and alternatives each, in a pattern that is matched here."""

CHILD: Final = Path(__file__).with_name("bounded_match_child.py")

UNBOUNDED: Final = re.compile(r"\)[*+{]|\(\?(?!:|=|!|<[=!]|P?<\w+>)")
"""A group that is repeated, and what may hide one: flags, comments, conditions."""


class Runaway(Exception):
    """The match does not come to an end in its time."""


class Spent(Exception):
    """The audit's matches have had all their time, whatever this one would take."""


class NotAPattern(Exception):
    """Python does not compile it: `syntax` where it says `re.error`, or else it is too large."""

    def __init__(self, reason: str, syntax: bool) -> None:
        super().__init__(reason)
        self.syntax = syntax


class Budget:
    """What the matches of one audit may take together."""

    def __init__(self) -> None:
        self._left = MOST_WAYS_IN_ALL
        self._compiled: dict[str, re.Pattern[str]] = {}
        self._child: _Child | None = None
        self._seconds: float = ALL_SECONDS
        self._endless: set[str] = set()

    def matches(self, pattern: str, name: str, how: How) -> bool:
        """Whether `re`'s function of that name finds one; raises `Runaway`, `Spent` and `NotAPattern`."""
        starts = len(name) + 1 if how == "search" else 1
        cost = ways(pattern, len(name)) * starts
        if pattern not in self._compiled:
            cost += WAYS_TO_COMPILE * len(pattern)
        if cost > MOST_WAYS or cost > self._left:
            return self._in_child(pattern, name, how)
        self._left -= int(cost)
        compiled = self._compile(pattern)
        return getattr(compiled, how)(name) is not None

    def close(self) -> None:
        """End the process, if there is one."""
        if self._child is not None:
            self._child.close()

    def _compile(self, pattern: str) -> re.Pattern[str]:
        found = self._compiled.get(pattern)
        if found is None:
            try:
                found = re.compile(pattern)
            except re.error as error:
                raise NotAPattern(str(error), syntax=True) from None
            except (OverflowError, RecursionError) as error:
                raise NotAPattern(str(error), syntax=False) from None
            if len(self._compiled) < KEPT:
                self._compiled[pattern] = found
        return found

    def _in_child(self, pattern: str, name: str, how: How) -> bool:
        if pattern in self._endless:
            raise Runaway
        if self._seconds <= 0:
            raise Spent
        if self._child is None:
            self._child = _Child()
        answer = self._child.ask(pattern, name, how)
        if answer is None:
            self._child.close()
            self._child = None
            self._seconds -= MATCH_SECONDS
            self._endless.add(pattern)
            raise Runaway
        self._seconds -= answer["took"] + ASKING
        if "refused" in answer:
            raise NotAPattern(answer["refused"], syntax=answer["syntax"])
        return bool(answer["found"])


class _Child:
    """The process; it ends when a match takes too long, or with this one."""

    def __init__(self) -> None:
        import subprocess  # only here: nearly every audit does without

        # Isolated and without site packages: it needs the standard library alone, and starts sooner so.
        command = [sys.executable, "-I", "-S", str(CHILD), str(MATCH_SECONDS)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, pattern: str, name: str, how: How) -> dict[str, Any] | None:
        """Its answer, as `bounded_match_child` describes it; None where it is gone."""
        asked, answered = self._process.stdin, self._process.stdout
        assert asked is not None and answered is not None  # both are pipes
        asked.write(json.dumps([pattern, name, how]).encode() + b"\n")
        asked.flush()
        line = answered.readline()
        return dict(json.loads(line)) if line.endswith(b"\n") else None

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


_CURRENT: ContextVar[Budget] = ContextVar("budget")


@contextmanager
def own_budget() -> Iterator[None]:
    """A budget for what is matched inside, which is one audit."""
    budget = Budget()
    token = _CURRENT.set(budget)
    try:
        yield
    finally:
        _CURRENT.reset(token)
        budget.close()


def bounded_match(pattern: str, name: str, how: How = "match") -> bool:
    """Whether `re`'s function of that name finds a pattern in a name.

    Raises `Runaway` where it would take too long, `Spent` where there is no time left, and `NotAPattern`.
    """
    budget = _CURRENT.get(None)
    if budget is not None:
        return budget.matches(pattern, name, how)
    with own_budget():
        return bounded_match(pattern, name, how)


def ways(pattern: str, length: int) -> float:
    """At most so many ways there are to try a pattern on a name of that many letters; inf for very many.

    Without a repeated group each repetition, of a letter or a class, takes a stretch of the name: there
    are so many ways to share the name among them. What may be there or not has two ways, and alternatives
    have as many as there are, most where all groups have equally many.
    """
    repeated = pattern.count("*") + pattern.count("+") + pattern.count("{")
    optional, bars = pattern.count("?"), pattern.count("|")
    if UNBOUNDED.search(pattern) or max(repeated, optional, bars) > MOST_CHOICES:
        return math.inf
    groups = min(bars, pattern.count("(") + 1)
    alternatives = (1 + bars / groups) ** groups if bars else 1.0
    shared = math.comb(length + repeated, repeated)
    return shared * 2.0**optional * alternatives if shared <= MOST_WAYS else math.inf
