"""`architectures`: the class whose tensors the checkpoint has, with the keys that it needs."""

from collections.abc import Iterator, Mapping
from typing import Any

from dflash_audit.diagnosis.draft_class import FAMILIES, PLAIN, Family
from dflash_audit.facts import Facts
from dflash_audit.repairs.edit import Edit, Proposal, edit
from dflash_audit.repairs.tensor_keys import key_edits
from dflash_audit.repairs.what_if import with_edits


def propose(facts: Facts) -> Iterator[Proposal]:
    """The class of the tensors' family, a plain one for tensors of none, with what it needs beside it."""
    names = [tensor.name.removeprefix("model.") for tensor in facts.checkpoint.tensors]
    families = [family for family in FAMILIES if any(map(family.tensors.fullmatch, names))]
    named = {run.model_class for run in facts.runs}
    for family in families:
        if family.classes and not named & set(family.classes):
            why = f"The tensors are those of a {family.name} draft, which this class builds."
            yield from _with_keys(facts, family.classes[0], why)
    draft = "fc.weight" in names or "hidden_norm.weight" in names
    if draft and not families and (named == {None} or _in_vain(facts, named)):
        yield from _with_keys(facts, PLAIN, "The tensors are those of a plain DFlash draft.")


def _in_vain(facts: Facts, named: set[str | None]) -> bool:
    """Whether the class is of a family that neither a tensor nor a key of the draft tells of."""
    return any(
        named & set(family.classes) and family.keys and not _has_key(facts.checkpoint.config, family)
        for family in FAMILIES
    )


def _has_key(config: Mapping[str, Any], family: Family) -> bool:
    inner = config.get("dflash_config")
    places = (config, inner if isinstance(inner, Mapping) else {})
    return any(place.get(key) is not None for place in places for key in family.keys)


def _with_keys(facts: Facts, name: str, why: str) -> Iterator[Proposal]:
    renamed = edit(facts.checkpoint.config, ("architectures",), [name], why)
    if renamed is None:
        return
    after = with_edits(facts, (renamed,))
    keys: dict[tuple[str, ...], Edit] = {}
    for run in after.runs:
        for proposal in key_edits(run, after.checkpoint):
            for each in proposal:
                keys.setdefault(each.path, each)
    yield (renamed,)
    yield (renamed, *keys.values())
