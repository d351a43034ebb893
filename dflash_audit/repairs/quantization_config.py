"""A `quantization_config` told anew by the tensors: a lost one, or one that the engine cannot read.

So is one of a method that takes no list, where some layers are dense on disk.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dflash_audit.diagnosis.ignore_lists import DIALECTS
from dflash_audit.diagnosis.stored import NOT_BUILT, faults
from dflash_audit.engine_run import EngineRun
from dflash_audit.facts import Facts
from dflash_audit.repairs.edit import ABSENT, Proposal, edit
from dflash_audit.repairs.ignore_list import with_list
from dflash_audit.repairs.stored_scheme import Scheme, quantized_parts, schemes
from dflash_audit.repairs.what_if import with_edits

OWN: Final = "quantization_config"
KEYS: Final = (OWN, "compression_config")
FILE: Final = "hf_quant_config.json"
UNREAD: Final = frozenset(("config", "quant_config"))
"""Stages at which an engine stops over a quantization config."""

LISTS: Final = frozenset((*DIALECTS, "gptq_marlin", "auto-round"))
"""Methods that take a list of layers to leave dense, which other repairs mend."""


def propose(facts: Facts) -> Iterator[Proposal]:
    """A whole config with the list that the engines need; nothing where the one that is there is read."""
    declared = any(run.quantization for run in facts.runs)
    unread = any(run.refusal and run.refusal.stage in UNREAD for run in facts.runs)
    from_file = FILE in facts.checkpoint.json_files
    readable = (declared or from_file) and not unread and not any(map(_without_list, facts.runs))
    if readable and not _without_groups(facts.checkpoint.config.get(OWN)):
        return
    for scheme in told_schemes(facts):
        yield _listed(facts, scheme)


def _without_groups(own: Any) -> bool:
    """Whether it is a config of compressed-tensors that quantizes nothing."""
    named = isinstance(own, Mapping) and own.get("quant_method") == "compressed-tensors"
    return named and not own.get("config_groups")


def _without_list(run: EngineRun) -> bool:
    """Whether an engine builds layers otherwise than they are stored, by a method that takes no list."""
    return run.quantization is not None and run.quantization not in LISTS and 0 < faults(run) < NOT_BUILT


def told_schemes(facts: Facts) -> Iterator[Scheme]:
    """What the tensors tell, each seen in the linears that an engine builds of a draft without a config."""
    removed = [edit(facts.checkpoint.config, (key,), ABSENT, "") for key in KEYS]
    bare = with_edits(facts, [each for each in removed if each])
    tree = next((run.tree for run in bare.runs if run.tree is not None and run.quantization is None), None)
    if tree is not None:
        yield from schemes(quantized_parts(tree.modules, facts.checkpoint))


def _listed(facts: Facts, scheme: Scheme) -> Proposal:
    """The scheme with the list of layers that are dense on disk, spelled for the engines."""
    config = with_list(facts, dict(scheme.config), scheme.list_key)
    found = edit(facts.checkpoint.config, (OWN,), config, scheme.why, scheme.doubt)
    return (found,) if found else ()
