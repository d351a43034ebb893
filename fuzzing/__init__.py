"""Coverage-guided fuzzing of what reads hostile input: a file a target, `run.py` runs one under atheris.

A target is a function `check(data)` of the bytes that the fuzzer makes. It returns for whatever the audit
takes or refuses in its own words, and raises for a fault of the audit: `tests/fuzzing` runs each over the
inputs in `corpus/`, without atheris.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Final

TARGETS: Final[Mapping[str, int]] = {
    "header": 4096,
    "index": 2048,
    "matcher": 256,
    "config": 256,
    "draft": 256,
    "checkpoint": 256,
}
"""Target, which is a file of this package -> the most bytes of an input."""


def target(name: str) -> Callable[[bytes], None]:
    """The target's `check`."""
    check: Callable[[bytes], None] = import_module(f"{__name__}.{name}").check
    return check
