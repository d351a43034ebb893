"""The smallest change with which the engines that disagree on a draft all serve it."""

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from dflash_audit.dtypes import DENSE_FLOATS, TORCH
from dflash_audit.engines import ENGINES, SUPERSEDED, engine
from dflash_audit.facts import Facts
from dflash_audit.finding import Finding
from dflash_audit.fixing.harm import brought
from dflash_audit.fixing.score import score
from dflash_audit.fixing.search import search
from dflash_audit.fold import enumerated
from dflash_audit.repairs.edit import ABSENT, Edit, Proposal
from dflash_audit.sources.checkpoint import Tensor
from dflash_audit.sources.tensors import Tensors, as_tensors
from dflash_audit.tree import FUSED

MOST_TENSORS: Final = 2_000
"""Of a draft on which a change is looked for: each one is replayed on every engine."""

MOST_SHOWN: Final = 80
"""Characters of a value that a sentence shows."""

QKV: Final = "qkv_proj"


def with_agreement(findings: Sequence[Finding], facts: Facts) -> list[Finding]:
    """The findings, where engines that disagree are told a change that was replayed, if there is one."""
    if len(facts.checkpoint.tensors) > MOST_TENSORS:
        return [*findings]
    return [_mended(each, facts) if each.unmended else each for each in findings]


def _mended(finding: Finding, facts: Facts) -> Finding:
    """The finding with the change for a hint; as it is where none is found."""
    engines = facts.gating.union(finding.unmended)
    if not engines <= ENGINES.keys():
        return finding
    profiles = tuple(run for run in facts.runs if run.engine in engines or run.engine not in SUPERSEDED)
    facts = facts._replace(runs=profiles)
    for group in _groups(facts.gating, finding.unmended):
        what = _rewritten(facts, group) or _edited(facts, group)
        if what is not None:
            served = enumerated(name for name in ENGINES if name in group)
            return replace(finding, hint=f"{what} Replayed so, {served} serve it.", unmended=())
    return finding


def _groups(gating: frozenset[str], failing: Sequence[str]) -> Iterator[frozenset[str]]:
    """All that disagree, then one that fails beside those that gate."""
    yield gating.union(failing)
    if len(failing) > 1:
        yield from (gating | {name} for name in failing)


def _rewritten(facts: Facts, engines: Collection[str]) -> str | None:
    """The same tensors in another layout."""
    stored = as_tensors(facts.checkpoint.tensors)
    for advice, rewrite in REWRITES:
        tensors = Tensors(rewrite(stored))
        if tensors == stored or _collide(stored, tensors):
            continue
        checkpoint = replace(facts.checkpoint, tensors=tensors)
        runs = tuple(engine(run.engine).replay(checkpoint, facts.conditions) for run in facts.runs)
        if score(facts._replace(checkpoint=checkpoint, runs=runs), engines).serves:
            return advice
    return None


def _collide(before: Tensors, after: Tensors) -> bool:
    """Whether a tensor gets a name that another one has."""
    had, has = (Counter(tensor.name for tensor in tensors) for tensors in (before, after))
    return any(has[name] > count for name, count in had.items())


def _without_model(tensors: Tensors) -> Iterator[Tensor]:
    return (tensor._replace(name=tensor.name.removeprefix("model.")) for tensor in tensors)


def _first_layer(tensors: Tensors) -> Iterator[Tensor]:
    renamed = (re.sub(r"^(model\.|)midlayer\.", r"\1layers.0.", tensor.name) for tensor in tensors)
    return (tensor._replace(name=name) for tensor, name in zip(tensors, renamed, strict=True))


def _one_qkv(tensors: Tensors) -> Iterator[Tensor]:
    """Each layer's three dense weights as one, in the place of the first."""
    found = {tensor.name: tensor for tensor in tensors}
    first, *_ = shards = [*FUSED[QKV]]
    for tensor in tensors:
        module, _, leaf = tensor.name.rpartition(".")
        attention, _, shard = module.rpartition(".")
        parts = [found[name] for each in shards if (name := f"{attention}.{each}.{leaf}") in found]
        if shard not in shards or leaf != "weight" or len(parts) < len(shards) or not _stackable(parts):
            yield tensor
        elif shard == first:
            rows = sum(part.shape[0] for part in parts)
            yield tensor._replace(name=f"{attention}.{QKV}.{leaf}", shape=(rows, tensor.shape[1]))


def _stackable(parts: Sequence[Tensor]) -> bool:
    """Whether they are dense matrices of one dtype, with the same columns."""
    kinds = {(part.dtype, part.shape[1:]) for part in parts}
    return (
        len(kinds) == 1
        and all(len(part.shape) == 2 for part in parts)
        and TORCH.get(parts[0].dtype) in DENSE_FLOATS
    )


REWRITES: Final[tuple[tuple[str, Callable[[Tensors], Iterable[Tensor]]], ...]] = (
    ('Take "model." off the names of the tensors.', _without_model),
    ('Begin the names of the tensors with "layers.0." in place of "midlayer.".', _first_layer),
    ("Store q_proj, k_proj and v_proj of each layer as one qkv_proj, its rows in this order.", _one_qkv),
)
"""What to do, and the tensors then: layouts that one engine takes and another does not, and one for both.

Source: SGLang 0.5.23 `srt/models/dflash.py`, `DFlashDraftModel.load_weights`; vLLM 0.33.0
`model_executor/models/qwen3_dflash.py` and `laguna_dflash.py`, `load_weights`.
"""


def _edited(facts: Facts, engines: Collection[str]) -> str | None:
    """Other values in config.json."""
    found = search(facts, engines)
    if not found.edits or not score(found.facts, engines).serves or any(brought(facts, found.facts)):
        return None
    return " ".join(_told(found.edits))


def _told(edits: Proposal) -> Iterator[str]:
    for each in edits:
        if each.new is ABSENT:
            yield f"Remove {each.key}."
        elif (added := _added(each)) is not None:
            yield f"Add {enumerated(map(json.dumps, added))} to {each.key}."
        else:
            yield f"Set {each.key}{_value(each.new)}."


def _added(each: Edit) -> list[Any] | None:
    """What a list gains; None for another value, or where it loses something too."""
    old = each.old
    if not isinstance(old, list) or not isinstance(each.new, list) or not old:
        return None
    return each.new[len(old) :] if each.new[: len(old)] == old else None


def _value(value: Any) -> str:
    shown = json.dumps(value)
    return f" to {shown}" if len(shown) <= MOST_SHOWN else ", as dflash-audit fix --engine all shows it"
