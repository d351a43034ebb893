"""The search for the smallest change with which the engines that decide serve the checkpoint.

Each proposal of the repairs is replayed. One that makes the verdict better stays,
and so does one after which an engine stops over something else at the same stage:
there it had not looked before. In the end what was not needed is taken out again.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from dflash_audit.engines import ENGINES
from dflash_audit.facts import Facts
from dflash_audit.fixing.score import Score, refusals, score
from dflash_audit.repairs import proposals
from dflash_audit.repairs.edit import ABSENT, Edit, Proposal, apart, at, edited, same
from dflash_audit.repairs.what_if import with_edits

MOST_STEPS: Final = 40
"""No draft has as much wrong with its config; a search that is longer goes round in circles."""


@dataclass(frozen=True, slots=True)
class Found:
    """The edits, and the facts with them; none where nothing makes it better."""

    edits: Proposal
    facts: Facts


def search(facts: Facts, engines: Collection[str]) -> Found:
    """The fewest edits with which `engines`, profiles all, do best."""
    edits: Proposal = ()
    current = facts
    seen = {refusals(facts, engines)}
    for _ in range(MOST_STEPS):
        if score(current, engines).serves:
            break
        step = _step(facts, current, edits, engines, seen)
        if step is None:
            break
        edits, current = step.edits, step.facts
        seen.add(refusals(current, engines))
    return _fewest(facts, Found(edits, current), engines)


def _step(
    original: Facts,
    current: Facts,
    edits: Proposal,
    engines: Collection[str],
    seen: set[tuple[str, ...]],
) -> Found | None:
    """The first proposal that makes it better, else the first that shows another refusal."""
    now, other = score(current, engines), None
    for _, proposal in proposals(current):
        merged = _merged(original, edits, proposal)
        facts = with_edits(original, merged)
        then = score(facts, engines)
        if (then.stages, then.errors) < (now.stages, now.errors):
            return Found(merged, facts)
        if other is None and then.stages == now.stages > 0 and refusals(facts, engines) not in seen:
            other = Found(merged, facts)
    return other


def _merged(original: Facts, edits: Proposal, more: Proposal) -> Proposal:
    """The edits with more upon them, one a key and told from the original; an edit below another joins it."""
    merged = list(edits)
    for each in more:
        above = next((e for e in merged if each.path[: len(e.path)] == e.path), None)
        if above is not None:
            place = merged.index(above)
            new = each.new if each.path == above.path else _inside(above, each)
            merged[place] = Edit(above.path, above.old, new, _said(above, each), above.doubt or each.doubt)
        else:
            merged = [e for e in merged if e.path[: len(each.path)] != each.path]
            merged.append(each)
    config = original.checkpoint.config
    return tuple(
        Edit(e.path, at(config, e.path), e.new, e.why, e.doubt)
        for e in merged
        if not same(at(config, e.path), e.new)
    )


def _inside(above: Edit, below: Edit) -> object:
    rest = Edit(below.path[len(above.path) :], ABSENT, below.new, below.why)
    return edited(above.new, (rest,)) if isinstance(above.new, dict) else above.new


def _said(above: Edit, each: Edit) -> str:
    return each.why if each.path == above.path else above.why


def _fewest(facts: Facts, found: Found, engines: Collection[str]) -> Found:
    """Without the edits that neither a deciding engine nor another one needs, key by key."""
    found = Found(apart(found.edits), found.facts)
    for each in found.edits:
        fewer = tuple(edit for edit in found.edits if edit.path != each.path)
        without = Found(fewer, with_edits(facts, fewer))
        if _no_worse(without.facts, found.facts, engines):
            found = without
    return found


def _no_worse(fewer: Facts, more: Facts, engines: Collection[str]) -> bool:
    everywhere = [*zip(_scores(fewer, engines), _scores(more, engines), strict=True)]
    return all(one <= other for one, other in everywhere)


def _scores(facts: Facts, engines: Collection[str]) -> Iterator[Score]:
    yield score(facts, engines)
    yield score(facts, ENGINES)
