"""What a user writes for a warm-up: on the command line, as options of the library. Imports no torch."""

import re
from typing import Final

from dflash_audit.usage import known
from dflash_audit.warmup.options import BACKENDS, DTYPES

CUDA: Final = re.compile(r"cuda:(0|[1-9][0-9]{0,2})")
"""One card of several."""


def device(name: str) -> str:
    """The word as the warm-up knows it; raises WrongUsage, as the others here do."""
    name = name.lower()
    return name if CUDA.fullmatch(name) else known(name, ("auto", "cpu", "cuda", "cuda:N"), "device")


def dtype(name: str) -> str:
    return known(name.lower(), DTYPES, "dtype")


def backend(name: str) -> str:
    return known(name.lower(), BACKENDS, "backend")
