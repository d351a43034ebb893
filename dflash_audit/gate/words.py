"""What a user writes for the gate: on the command line, in the settings, as arguments of the library."""

from collections.abc import Iterable
from typing import cast

from dflash_audit.finding import SEVERITIES, FailOn
from dflash_audit.gate.controls import Ignore
from dflash_audit.rules import RULES
from dflash_audit.usage import WrongUsage, known


def rule(name: str) -> str:
    """The name of a rule, in upper or lower case; raises WrongUsage, as the others here do."""
    return known(name.lower(), RULES, "rule")


def fail_on(name: str) -> FailOn:
    return cast(FailOn, known(name.lower(), (*SEVERITIES, "never"), "severity"))


def selected(texts: Iterable[str]) -> frozenset[str]:
    """RULE[,RULE], several of them."""
    return frozenset(rule(name.strip()) for text in texts for name in text.split(","))


def ignore(text: str) -> Ignore:
    """RULE, or RULE:SUBJECT-GLOB."""
    name, colon, glob = text.partition(":")
    if colon and not glob:
        raise WrongUsage(f"{text} names no subject.")
    return Ignore(rule(name), glob or None)


def ignores(texts: Iterable[str]) -> tuple[Ignore, ...]:
    return tuple(map(ignore, texts))
