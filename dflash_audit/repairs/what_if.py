"""The checkpoint with another config, replayed by the profiles; nothing is written for it."""

from collections.abc import Iterable
from dataclasses import replace

from dflash_audit.engines import ENGINES, engine
from dflash_audit.facts import Facts
from dflash_audit.repairs.edit import Edit, edited


def with_edits(facts: Facts, edits: Iterable[Edit]) -> Facts:
    """The facts of the checkpoint after the edits: every profile, replayed."""
    config = edited(facts.checkpoint.config, edits)
    checkpoint = replace(facts.checkpoint, config=config)
    runs = tuple(engine(name).replay(checkpoint, facts.conditions) for name in ENGINES)
    return replace(facts, checkpoint=checkpoint, runs=runs, warmups=())
