"""The draft ships an embedding or a head over another vocabulary than it is served with.

SGLang does not load the draft's own `embed_tokens` and `lm_head`: it uses the target's. A copy of those is
harmless. A table of another size is not a copy.

## Why it matters

The draft was trained to read or to write other tokens than the ones it gets: a reduced vocabulary, or
another tokenizer. It serves, and accepts nothing.

## Example

Before: `vocab_size` is 151936, and the draft has a head over a reduced vocabulary.

    lm_head.weight [32000, 4096]

After: trained over the whole vocabulary, without a head of its own.

## How to fix

Serve the draft with an engine that uses its own tables, or train it over the target's vocabulary. If only
`vocab_size` is wrong, correct it.
"""

from collections.abc import Iterator

from dflash_audit.diagnosis.sglang_draft import read_draft, whole
from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.finding import Finding
from dflash_audit.sources.checkpoint import Checkpoint

TABLES = ("embed_tokens.weight", "lm_head.weight")


def find(run: EngineRun, checkpoint: Checkpoint, conditions: Conditions) -> Iterator[Finding]:
    """One finding a table that the engine does not load, and whose rows are not the vocabulary's.

    That is the target's where one is named, and `vocab_size` where not.
    """
    draft = read_draft(run, checkpoint)
    if draft is None:
        return
    theirs = None if conditions.target is None else conditions.target.vocab_size
    if theirs is None and not draft.given("vocab_size"):
        return
    vocabulary = whole(draft.config.get("vocab_size")) if theirs is None else theirs
    told = f"vocab_size is {vocabulary}" if theirs is None else f"the target has {theirs} tokens"
    # A reduced vocabulary that the config announces is `unread-key`.
    known = (vocabulary, whole(draft.config.get("draft_vocab_size")))
    for name in TABLES:
        table = draft.tensors.get(name)
        loaded = draft.nemotron and name == "embed_tokens.weight"
        if table is None or loaded or not table.shape or table.shape[0] in known:
            continue
        yield Finding(
            rule="foreign-vocabulary",
            severity="warning",
            engine=run.engine,
            subject=table.name,
            message=(
                f"{table.name} has {table.shape[0]} rows, and {told}: the draft was"
                f" trained on another vocabulary than {run.engine} serves it with, which is the target's."
            ),
            hint="Correct vocab_size, or train the draft over the target's vocabulary.",
            subjects=(table.name,),
        )
