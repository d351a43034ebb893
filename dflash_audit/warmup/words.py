"""What a user writes for a warm-up: on the command line, as options of the library. Imports no torch."""

import re
from typing import Final

from dflash_audit.usage import WrongUsage, known
from dflash_audit.warmup.options import BACKENDS, DTYPES

CUDA: Final = re.compile(r"cuda:(0|[1-9][0-9]{0,2})")
"""One card of several."""

DEVICES: Final = ("auto", "cpu", "cuda", "cuda:N")


def device(name: str) -> str:
    """The word as the warm-up knows it; raises WrongUsage, as the others here do."""
    name = name.lower()
    if name in ("gpu", "nvidia"):
        raise WrongUsage(f"{name} is no device. Did you mean cuda? Known: {', '.join(DEVICES)}.")
    return name if CUDA.fullmatch(name) else known(name, DEVICES, "device")


def dtype(name: str) -> str:
    return known(name.lower(), DTYPES, "dtype")


def backend(name: str) -> str:
    return known(name.lower(), BACKENDS, "backend")
