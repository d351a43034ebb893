"""A spelling of the ignore list with which the engines build what is on disk.

It is worked out from the tensors and from the names under which each engine looks
its layers up, and handed out only after the engines were replayed with it.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from dflash_audit.diagnosis.ignore_lists import (
    DIALECTS,
    Dialect,
    Place,
    config_at,
    entries_at,
    matches,
    place_of,
    with_list,
)
from dflash_audit.diagnosis.stored import State, built_otherwise, faults, state_of, stored_in, stored_modules
from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.engines import LIVE, engine
from dflash_audit.fold import enumerated, title
from dflash_audit.quantization.config import QuantConfig
from dflash_audit.sources.checkpoint import Checkpoint, Tensor
from dflash_audit.sources.tensors import Tensors

MOST_TRIED: Final = 60
"""So many changes of a list are each tried without the others, which is a replay of every engine."""


NUMBERED: Final = re.compile(r"model\\?\.layers\\?\.\d")
"""A layer by the number that vLLM gives it, which is after those of the target."""


@dataclass(frozen=True, slots=True)
class Names:
    """The names under which one engine looks linears up: of those dense on disk, and of the quantized.

    A fused one with shards of both, which no list can spell, is in neither.
    """

    config: QuantConfig
    dense: tuple[str, ...]
    quantized: frozenset[str]

    def reached(self, entry: str, names: Iterable[str]) -> bool:
        return any(matches(self.config, entry, name) for name in names)


@dataclass(frozen=True, slots=True)
class Draft:
    """What is spelled: the draft, under which conditions it is replayed, on which engines, and its list.

    Of the checkpoint only what may be at fault is looked at.
    """

    checkpoint: Checkpoint
    conditions: Conditions
    engines: tuple[str, ...]
    place: Place
    dialect: Dialect

    def replay(self, entries: Sequence[str], all_linear: bool = False) -> list[EngineRun]:
        """The engines on the draft with another list."""
        return [self.replay_on(name, entries, all_linear) for name in self.engines]

    def replay_on(self, name: str, entries: Sequence[str], all_linear: bool) -> EngineRun:
        """One engine on the draft with another list."""
        edited = with_list(self.checkpoint, self.place, entries, all_linear)
        return engine(name).replay(edited, self.conditions)

    def looking_at(self, tensors: tuple[Tensor, ...] | None) -> "Draft":
        """The draft of whose tensors these alone are loaded, all for None."""
        return replace(self, checkpoint=replace(self.checkpoint, looked_at=tensors))


@dataclass(frozen=True, slots=True)
class Spelling:
    """A list that was replayed.

    `kept` is what stays of the checkpoint's, `removed` what goes, `words` are the
    names, or last parts of names, that it gains, `added` the entries for them; with
    `all_linear` the config group must target `Linear`. `runs` are the replays, of what
    may be at fault.
    """

    draft: Draft
    kept: tuple[str, ...]
    words: tuple[str, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    all_linear: bool
    runs: tuple[EngineRun, ...]

    @property
    def place(self) -> Place:
        return self.draft.place

    def on_all_tensors(self) -> Iterator[EngineRun]:
        """Every engine with the list, on all of the checkpoint: one after another, for each may be large."""
        whole = self.draft.looking_at(None)
        for name in self.draft.engines:
            yield whole.replay_on(name, self.entries, self.all_linear)

    @property
    def entries(self) -> tuple[str, ...]:
        """The whole list."""
        return (*self.kept, *self.added)

    @property
    def serves(self) -> tuple[str, ...]:
        """The engines that build every linear as it is on disk with it."""
        return tuple(run.engine for run in self.runs if not faults(run))

    def advice(self) -> str:
        """What to change, which engines then build all as it is on disk, and what no list mends."""
        steps = ['set the targets to ["Linear"]'] if self.all_linear else []
        if self.removed:
            steps.append(f"take {_listed(self.removed)} out of {self.place.name}")
        if self.added:
            steps.append(f"add {_listed(self.added)} to {self.place.name}")
        what = ", and ".join(steps)
        return " ".join((f"{what[0].upper()}{what[1:]}.", *self._outcomes(), *self.depth()))

    def depth(self) -> Iterator[str]:
        """What the numbers of layers among the entries rest on, where the target was not looked up."""
        for run in self.runs:
            numbered = any(NUMBERED.search(entry) for entry in self.added)
            for said in run.assumed if numbered else ():
                key, _, value = said.partition(": ")
                if key == "num_hidden_layers":
                    depth = value.partition(",")[0]
                    yield f"The number is for a target of {depth} layers: --target tells another."

    def _outcomes(self) -> Iterator[str]:
        if self.serves:
            does = "build" if len(self.serves) > 1 else "builds"
            yield f"Replayed so, {enumerated(self.serves)} {does} every linear as it is on disk."
        left: dict[str, list[str]] = {}
        for run in self.runs:
            if faults(run):
                left.setdefault(_otherwise(run), []).append(run.engine)
        for why, engines in left.items():
            said = why if len(engines) == 1 else re.sub(r"\bit builds\b", "they build", why)
            yield f"No list mends all for {enumerated(engines)}: {said}."


def spelled(
    checkpoint: Checkpoint, runs: Sequence[EngineRun], conditions: Conditions, whole: bool = False
) -> Spelling | None:
    """The fewest changes to the list with which the engines build the most as it is on disk.

    With `whole` by whole names, where that is more: an engine may take no part of one. vLLM's have the
    numbers of layers in them that a draft gets beside one target.

    None where no engine gains by a list: its method has none, what is built is
    what is stored, nothing is stored quantized, or something else stands in the way.
    """
    if all(stored.state is not State.QUANTIZED for stored in stored_modules(checkpoint.tensors).values()):
        return None
    judged = [run for run in runs if run.skipped is None and run.engine not in LIVE]
    failing = next((run for run in judged if run.quantization and faults(run)), None)
    place = place_of(checkpoint, failing.quantization) if failing else None
    if failing is None or failing.quantization is None or place is None:
        return None
    engines = tuple(run.engine for run in judged)
    draft = Draft(checkpoint, conditions, engines, place, DIALECTS[failing.quantization])
    draft, names = _narrowed(draft, judged)
    targets = (False, True) if _one_group(config_at(checkpoint, place)) else (False,)
    candidates = (_candidate(draft, names, all_linear) for all_linear in targets)
    best = min(candidates, key=lambda spelling: _faults(spelling.runs))
    if _faults(best.runs) and draft.dialect.anywhere is not None:
        spelled_so = replace(draft, dialect=draft.dialect._replace(spell=draft.dialect.anywhere))
        other = _candidate(spelled_so, names, all_linear=False)
        if _faults(other.runs) < _faults(best.runs):
            draft, best = spelled_so, other
    if whole and _faults(best.runs):
        other = _candidate(draft, names, all_linear=best.all_linear, whole=True)
        best = other if _faults(other.runs) < _faults(best.runs) else best
    if _faults(best.runs) >= _faults(judged):
        # An entry may reach a shard in one look-up of an engine and not in another: say all names anew.
        best = _candidate(draft, names, all_linear=False, anew=True)
    agreed = {run.engine for run in judged if not faults(run)}
    if _faults(best.runs) >= _faults(judged) or not agreed.issubset(best.serves):
        return None
    fewest = _fewest(draft, best)
    # A list that is no list is mended by writing it anew, which its refusal tells.
    return fewest if fewest.added or fewest.removed or fewest.all_linear else None


def _narrowed(draft: Draft, judged: Sequence[EngineRun]) -> tuple[Draft, list[Names]]:
    """The draft with those tensors alone that some engine has a module for, and what engines look up.

    No list makes a fault of another tensor, of which there may be a whole target. Where an
    engine builds nothing, nothing tells what it has modules for, and all are looked at.
    """
    bare = draft.looking_at(()).replay(draft.dialect.everything)
    trees = {run.engine: run.tree.modules for run in (*judged, *bare) if run.tree is not None}
    if len(trees) == len(draft.engines):
        own = {name for tree in trees.values() for name in tree.owners}
        stored = stored_modules(draft.checkpoint.tensors)
        at_stake = {tensor for name in own & stored.keys() for tensor in stored[name].tensors}
        draft = draft.looking_at(Tensors(t for t in draft.checkpoint.tensors if t in at_stake))
    return draft, [found for run in bare if (found := _names(draft, run))]


def _faults(runs: Iterable[EngineRun]) -> int:
    return sum(map(faults, runs))


def _one_group(config: Mapping[str, Any]) -> bool:
    groups = config.get("config_groups")
    return isinstance(groups, dict) and len(groups) == 1 and all(isinstance(g, dict) for g in groups.values())


def _names(draft: Draft, run: EngineRun) -> Names | None:
    """What an engine looks up, seen where it leaves every layer dense; None where it does not build."""
    if run.tree is None or run.quant_config is None:
        return None
    names: dict[State, dict[str, None]] = {state: {} for state in State}
    for name, parts in stored_in(run.tree.modules, draft.checkpoint.to_load).items():
        prefix, state = run.tree.modules[name].prefix, state_of(parts)
        if prefix is not None and state is not None:
            names[state].update(dict.fromkeys(run.quant_config.names_looked_up(prefix)))
    return Names(run.quant_config, tuple(names[State.DENSE]), frozenset(names[State.QUANTIZED]))


def _candidate(
    draft: Draft, names: Sequence[Names], all_linear: bool, anew: bool = False, whole: bool = False
) -> Spelling:
    """The list with what it lacks added and what does harm taken out.

    With `anew` all that is dense is added, with `whole` by whole names alone.
    """
    written = entries_at(draft.checkpoint, draft.place)
    removed = tuple(entry for entry in written if any(n.reached(entry, n.quantized) for n in names))
    words = _lacking(names, [] if anew else [entry for entry in written if entry not in removed], whole)
    return _replayed(draft, words, removed, all_linear)


def _lacking(names: Sequence[Names], kept: Sequence[str], whole: bool) -> tuple[str, ...]:
    """What to spell for the names of dense layers that `kept` does not reach.

    The last part of a name where no quantized layer has it too, else, or where it is asked for, the `whole`;
    nothing for a name that stands for both.
    """
    lasts = {_last(name) for one in names for name in one.quantized}
    words: dict[str, None] = {}
    for one in names:
        for name in one.dense:
            if name not in one.quantized and not any(matches(one.config, entry, name) for entry in kept):
                words[name if whole or _last(name) in lasts else _last(name)] = None
    return tuple(words)


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _replayed(draft: Draft, words: tuple[str, ...], removed: tuple[str, ...], all_linear: bool) -> Spelling:
    written = entries_at(draft.checkpoint, draft.place)
    kept = tuple(entry for entry in written if entry not in removed)
    added = draft.dialect.spell(words)
    runs = tuple(draft.replay((*kept, *added), all_linear))
    return Spelling(draft, kept, words, added, removed, all_linear, runs)


BUILT_OTHERWISE: Final = {State.QUANTIZED: "dense", State.DENSE: "quantized", State.MIXED: "as one"}


def _otherwise(run: EngineRun) -> str:
    """What an engine builds otherwise than it is stored, under the best list."""
    if run.plan is None:
        return run.refusal.reason.rstrip(".") if run.refusal else "it is not replayed"
    odd = built_otherwise(run)
    for state, built in BUILT_OTHERWISE.items():
        modules = [name for name, found in odd.items() if found is state]
        if modules:
            verb = "is" if len(modules) == 1 else "are"
            return f"it builds {title(modules)} {built}, which {verb} {state} on disk"
    return "the tensors are in another layout than it builds"


def _fewest(draft: Draft, best: Spelling) -> Spelling:
    """The same without the additions and removals that no engine needs, unless they are too many to try."""
    if len(best.words) + len(best.removed) > MOST_TRIED:
        return best
    for word in best.words:
        words = tuple(other for other in best.words if other != word)
        best = _better(best, _replayed(draft, words, best.removed, best.all_linear))
    for entry in best.removed:
        removed = tuple(other for other in best.removed if other != entry)
        best = _better(best, _replayed(draft, best.words, removed, best.all_linear))
    return best


def _better(best: Spelling, fewer: Spelling) -> Spelling:
    return fewer if _faults(fewer.runs) <= _faults(best.runs) else best


def _listed(entries: Iterable[str]) -> str:
    return enumerated(map(json.dumps, entries))
