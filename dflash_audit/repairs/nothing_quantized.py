"""A quantization that is declared over tensors that are all dense."""

from collections.abc import Iterator

from dflash_audit.diagnosis.stored import State, stored_modules
from dflash_audit.facts import Facts
from dflash_audit.repairs.edit import ABSENT, Proposal, edit

DECLARATIONS = ("quantization_config", "compression_config")


def propose(facts: Facts) -> Iterator[Proposal]:
    """Its removal; nothing where a tensor is quantized."""
    states = {stored.state for stored in stored_modules(facts.checkpoint.tensors).values()} - {None}
    if states != {State.DENSE}:
        return
    why = "Every weight on disk is dense, and this declares quantized ones."
    found = [edit(facts.checkpoint.config, (key,), ABSENT, why) for key in DECLARATIONS]
    yield tuple(each for each in found if each)
