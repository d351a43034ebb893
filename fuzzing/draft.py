"""An engine's replay of a draft, and every rule on it: an input picks the engine, draft and server."""

from dataclasses import replace

from dflash_audit.engines import ENGINES, engine
from dflash_audit.errors import Unreadable
from dflash_audit.facts import Facts
from dflash_audit.judge import engine_findings
from fuzzing import drafted
from fuzzing.draw import Draw
from fuzzing.endless import endless_at_once


def check(data: bytes) -> None:
    """Told apart by its words, or every finding says what it is about and why."""
    draw = Draw(data)
    name = draw.one_of([*ENGINES])
    try:
        checkpoint = drafted.checkpoint(draw)
        conditions = drafted.conditions(draw)
        if draw.number() % 4 == 1:
            conditions = replace(conditions, target=drafted.target(draw))
        with endless_at_once():
            run = engine(name).replay(checkpoint, conditions)
            facts = Facts(checkpoint, (run,), frozenset((name,)), conditions)
            findings = [*engine_findings(run, facts)]
    except Unreadable as refused:
        assert refused.message.isprintable()
        return
    assert all(finding.message and finding.engine == name for finding in findings)
