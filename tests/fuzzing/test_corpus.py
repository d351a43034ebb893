"""Every input that the fuzzers keep, old faults among them, through its target; without a fuzzer.

`fuzzing/` is what atheris runs (`make fuzz`); a target raises for a fault of the audit alone.
"""

import random
from pathlib import Path

import pytest

from fuzzing import TARGETS, target

CORPUS = Path(__file__).parents[2] / "fuzzing" / "corpus"
EDITED = {"header": 2000, "index": 1000, "matcher": 300, "config": 500, "draft": 300, "checkpoint": 100}
"""Target -> how many inputs are made of those in its corpus; a checkpoint takes some milliseconds."""


@pytest.mark.parametrize("name", TARGETS)
def test_corpus(name: str) -> None:
    inputs = sorted((CORPUS / name).iterdir())
    assert inputs
    for path in inputs:
        target(name)(path.read_bytes())


@pytest.mark.parametrize("name", TARGETS)
def test_inputs_near_the_corpus(name: str) -> None:
    inputs = [path.read_bytes() for path in sorted((CORPUS / name).iterdir())]
    chance = random.Random(0)
    for _ in range(EDITED[name]):
        target(name)(edited(chance.choice(inputs), chance))


def edited(data: bytes, chance: random.Random) -> bytes:
    """The input with a few bytes changed, cut out or put in."""
    for _ in range(chance.randint(1, 4)):
        at = chance.randint(0, len(data))
        data = data[:at] + chance.randbytes(chance.randint(0, 6)) + data[at + chance.randint(0, 4) :]
    return data
