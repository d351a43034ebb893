"""The draft has the marks of a layout that predicts from its first row, and does not say so.

A block begins with the token that was accepted last, the anchor. DFlash drafts predict nothing from its
row; those of DeepSpec do, and are one row ahead. A draft tells with `sample_from_anchor`; DeepSpec's
`dflash_*_block7` drafts do not, and are known by a `markov_rank` of 0, which only that exporter writes into
a DFlash draft.

## Why it matters

SGLang's DFlash worker never samples the first row. Every token of such a draft is shifted by one: the
server is healthy, and the acceptance length stays near 1 (sglang#40144).

## Example

Before:

    "architectures": ["DFlashDraftModel"], "block_size": 7, "markov_rank": 0

After, with the layout said for engines that honour it:

    "architectures": ["DFlashDraftModel"], "block_size": 7, "sample_from_anchor": true

## How to fix

If the draft predicts from the anchor's row, serve it with an engine that honours `sample_from_anchor`, and
set it. If it does not, set `sample_from_anchor` to false.
"""

from collections.abc import Iterator

from dflash_audit.diagnosis.sglang_draft import read_draft
from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding
from dflash_audit.sources.checkpoint import Checkpoint

DECLARED = ("sample_from_anchor", "query_zero_predicts_next")


def find(run: EngineRun, checkpoint: Checkpoint) -> Iterator[Finding]:
    """One finding if a DFlash draft has `markov_rank` 0 and does not declare its layout."""
    draft = read_draft(run, checkpoint)
    if draft is None or draft.model_class != "DFlashDraftModel" or draft.raw.get("markov_rank") != 0:
        return
    if any(draft.either(key) is not None for key in DECLARED):
        return
    yield Finding(
        rule="anchor-first",
        severity="warning",
        engine=run.engine,
        subject="markov_rank",
        message=(
            "markov_rank 0 in a DFlash draft is the mark of DeepSpec's exporter, whose drafts predict from"
            f" the first row of a block, and sample_from_anchor is not given: {run.engine} does not sample"
            " that row, so every token would be shifted by one."
        ),
        hint="Set sample_from_anchor to what the draft was trained with: this engine serves false alone.",
        subjects=("markov_rank",),
    )
