"""The checkpoint with another config, replayed by the profiles; nothing is written for it."""

from collections.abc import Iterable
from dataclasses import replace

from dflash_audit.engines import ENGINES, engine
from dflash_audit.facts import Facts
from dflash_audit.repairs.edit import Edit, edited


def with_edits(facts: Facts, edits: Iterable[Edit]) -> Facts:
    """The facts of the checkpoint after the edits: every profile that they tell of, replayed."""
    config = edited(facts.checkpoint.config, edits)
    checkpoint = replace(facts.checkpoint, config=config)
    profiles = [run.engine for run in facts.runs if run.engine in ENGINES]
    runs = tuple(engine(name).replay(checkpoint, facts.conditions) for name in profiles)
    return facts._replace(checkpoint=checkpoint, runs=runs, warmups=())
