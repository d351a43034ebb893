"""The checkpoint is no draft, and a draft lies in it or beside it.

Some drafts are published in the repo of their target: in a folder of their own, or packed among its
tensors.

## Why it matters

There is nothing to audit, and nothing to serve as a draft, under this name.

## Example

Before:

    dflash-audit target

After:

    dflash-audit target/dflash

## How to fix

Audit the folder that holds the draft. A DSpark draft that is packed in its target, or lies in its `dspark`
folder, is found by SGLang itself: `--speculative-algorithm DSPARK` without a draft's path.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from dflash_audit.facts import Facts
from dflash_audit.finding import Finding

PACKED: Final = re.compile(r"mtp\.(\d+\.|layers\.\d+\.)?(main_norm|main_proj|markov_head)\..*")
PACKED_KEYS: Final = tuple(
    f"dspark_{key}" for key in ("block_size", "markov_rank", "noise_token_id", "target_layer_ids")
)
"""Source: SGLang 0.5.23 `dspark_config.py`, `checkpoint_bundles_dspark_draft`."""

FOLDER: Final = r"(?i).*(dflash|dspark|draft|speculator).*/"
"""Compiled only where there is no draft: letters of any case take their time."""


def find(facts: Facts, findings: Sequence[Finding]) -> Iterator[Finding]:
    """One finding if no engine has a draft class for it, and a draft is packed in it or beside it."""
    del findings
    if any(run.model_class is not None for run in facts.runs):
        return
    yield from _packed(facts)
    yield from _beside(facts)


def _packed(facts: Facts) -> Iterator[Finding]:
    keys = [key for key in PACKED_KEYS if facts.checkpoint.config.get(key) is not None]
    tensors = [t.name for t in facts.checkpoint.tensors if PACKED.fullmatch(t.name)]
    if keys and tensors:
        yield Finding(
            rule="not-a-draft",
            severity="note",
            engine=None,
            subject=tensors[0],
            message=(
                f"This is a target with a DSpark draft packed in it: {', '.join(keys)} in config.json, and"
                f" {len(tensors)} tensors of its head. SGLang builds it with a class of its own, which is not"
                " replayed."
            ),
            hint="Serve it with --speculative-algorithm DSPARK and without a draft's path.",
            subjects=tuple(tensors),
        )


def _beside(facts: Facts) -> Iterator[Finding]:
    for name in facts.checkpoint.names:
        if re.fullmatch(FOLDER, name):
            yield Finding(
                rule="not-a-draft",
                severity="note",
                engine=None,
                subject=name,
                message=f"This is no draft, and {name} beside it looks like one.",
                hint=f"Audit {name} itself, and serve the draft from there.",
                subjects=(name,),
            )
