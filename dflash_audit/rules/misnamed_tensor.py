"""A tensor goes nowhere under its name, and under another one it would.

The name has a prefix that the engine does not strip (it strips `model.` alone), or is the name that another
engine or the training code gives the tensor.

## Why it matters

The engine drops the tensor without a word, and its parameter keeps what its memory held.

## Example

Before, as a training wrapper saves them:

    dflash_module.layers.0.self_attn.q_proj.weight, candidate_selector.predecessor_codebook.weight

After:

    layers.0.self_attn.q_proj.weight, candidate_selector.predecessor_codebook

## How to fix

Rename the tensors as the finding says, and write the index anew if there is one.
"""

import re
from collections.abc import Iterator, Mapping, Set
from typing import Final

from dflash_audit.drops import dropped
from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding
from dflash_audit.fold import title
from dflash_audit.loadplan import LoadPlan

RENAMES: Final = (
    (re.compile(r"(.*_codebook)\.weight"), r"\1"),
    (re.compile(r"(markov_w[12]\..*)"), r"markov_head.\1"),
    (re.compile(r"midlayer\.(.*)"), r"layers.0.\1"),
)
"""Names of the training code, of ModelOpt's exporter and of EAGLE-3 drafts, as this engine has them."""

LONGEST_PREFIX: Final = 4
"""Parts of a name that may be a wrapper's."""


def find(run: EngineRun) -> Iterator[Finding]:
    """One finding a way of renaming, with all tensors that it would bring home."""
    if run.plan is None:
        return
    homes: dict[str, dict[str, str]] = {}
    open_names = _open_names(run.plan) if dropped(run) else frozenset()
    for tensor in dropped(run) if open_names else ():
        for way, home in _renamed(tensor.name):
            if home in open_names:
                homes.setdefault(way, {})[tensor.name] = home
                break
    for way, names in homes.items():
        yield _finding(run, way, names)


def _renamed(name: str) -> Iterator[tuple[str, str]]:
    """(how, the name that it gives) for each way to rename a tensor."""
    for pattern, template in RENAMES:
        if (match := pattern.fullmatch(name.removeprefix("model."))) is not None:
            yield pattern.pattern, match.expand(template)
    end = -1
    for _ in range(LONGEST_PREFIX):
        end = name.find(".", end + 1)
        if end < 0:
            return
        yield name[:end], name[end + 1 :]


def _open_names(plan: LoadPlan) -> Set[str]:
    """The names under which a tensor would come to a parameter that nothing fills."""
    missing = plan.missing()
    leaves: dict[str, list[str]] = {}
    for name in missing:
        leaves.setdefault(plan.slots[name].module.name, []).append(plan.slots[name].parameter.name)
    stored = {
        f"{stored}.{leaf}"
        for stored, module in plan.modules.owners.items()
        for leaf in leaves.get(module.name, ())
    }
    return missing.keys() | stored | {f"model.{name}" for name in stored}


def _finding(run: EngineRun, way: str, names: Mapping[str, str]) -> Finding:
    first, home = next(iter(names.items()))
    many = f"{len(names)} tensors go" if len(names) > 1 else "The tensor goes"
    prefix = first == f"{way}.{home}"
    hint = f"Remove {way}. from their names." if prefix else f"Rename {first} to {home}, and its like."
    return Finding(
        rule="misnamed-tensor",
        severity="warning",
        engine=run.engine,
        subject=f"{way}.*" if prefix else title(names),
        message=f"{many} nowhere, and {run.engine} has a parameter for {first} under the name {home}.",
        hint=hint,
        subjects=tuple(names),
    )
