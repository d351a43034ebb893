"""Every input that the fuzzers keep, old faults among them, through its target; without a fuzzer.

`fuzzing/` is what atheris runs (`make fuzz`); a target raises for a fault of the audit alone.
"""

import random
from itertools import product
from pathlib import Path

import pytest
from materialize import materialize
from parity.case import FIXTURES

from dflash_audit.engine_run import Conditions
from dflash_audit.finding import Finding
from dflash_audit.formats import render
from dflash_audit.formats.screen import Screen
from dflash_audit.report import Report
from dflash_audit.sources.disk import read_path
from fuzzing import TARGETS, checkpoint, drafted, target

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


def test_whole_audits_look_for_a_change_for_engines_that_disagree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = read_path(str(materialize(FIXTURES / "differences" / "07-prefixed-names", tmp_path / "draft")))
    found: list[Finding] = []

    def seen(format_name: str, report: Report, screen: Screen) -> str:
        found.extend(report.findings)
        return render(format_name, report, screen)

    monkeypatch.setattr(drafted, "checkpoint", lambda draw: draft)
    monkeypatch.setattr(drafted, "conditions", lambda draw: Conditions())
    monkeypatch.setattr(checkpoint, "render", seen)
    for first, second in product(range(4), range(3)):
        target("checkpoint")(bytes((first, 0, second)))
    hints = [each.hint or "" for each in found if each.rule == "engines-disagree"]
    assert hints and all(hint.endswith(" serve it.") for hint in hints)


def edited(data: bytes, chance: random.Random) -> bytes:
    """The input with a few bytes changed, cut out or put in."""
    for _ in range(chance.randint(1, 4)):
        at = chance.randint(0, len(data))
        data = data[:at] + chance.randbytes(chance.randint(0, 6)) + data[at + chance.randint(0, 4) :]
    return data
