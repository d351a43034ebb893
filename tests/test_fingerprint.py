"""What tells a finding from every other."""

from dataclasses import replace

import pytest

from dflash_audit.finding import Finding
from dflash_audit.fingerprint import fingerprints

FINDING = Finding(
    "dropped-tensor", "error", "sglang-next", "fc.weight", "It goes nowhere.", "Mend it.", ("a",)
)


def one(finding: Finding, source: str = "org/draft") -> str:
    (found,) = fingerprints([finding], source)
    return found


def test_it_does_not_hang_on_words_or_company() -> None:
    reworded = replace(FINDING, message="Nothing takes it.", hint=None, severity="warning", subjects=())
    other = replace(FINDING, subject="norm.weight")
    assert one(reworded) == one(FINDING) == fingerprints([other, FINDING], "org/draft")[1]


@pytest.mark.parametrize(
    "other",
    [
        replace(FINDING, rule="unfilled-parameter"),
        replace(FINDING, engine=None),
        replace(FINDING, engine="sglang-0.5.23"),
        replace(FINDING, subject="fc.bias"),
        replace(FINDING, subject="fc.weight\ud800"),
    ],
)
def test_it_hangs_on_rule_engine_and_subject(other: Finding) -> None:
    assert one(other) != one(FINDING)


def test_it_hangs_on_the_source() -> None:
    assert one(FINDING, "org/other") != one(FINDING)


def test_no_two_of_a_report_are_the_same() -> None:
    twice = fingerprints([FINDING, FINDING], "org/draft")
    assert len({*twice}) == 2
    assert twice[0] == one(FINDING)
