"""The trained row of the mask token is, or has to be, in a mask_embedding.pt beside the weights.

Some drafts (MiMo's) train the embedding of the mask token, which the target's table does not have, and ship
it as `mask_embedding.pt`.

## Why it matters

SGLang's DFlash worker looks for the file in the folder that `--speculative-draft-model-path` names, and
writes the row into the target's own table. Under the name of a Hub repo it looks nowhere, and says nothing:
the blocks are filled with an untrained row. Its DSpark worker does not look at all. The `mask_token_id` in
the file must be the config's, or the server stops.

## Example

Before:

    --speculative-draft-model-path org/draft

After:

    hf download org/draft --local-dir draft
    --speculative-draft-model-path ./draft

## How to fix

Serve from a local folder that has the file, and keep it beside config.json when the draft is uploaded
again.
"""

from collections.abc import Iterator
from typing import Final

from dflash_audit.diagnosis.sglang_draft import Draft, read_draft
from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding, Severity
from dflash_audit.sources.checkpoint import Checkpoint

FILE: Final = "mask_embedding.pt"
SERVE_LOCALLY: Final = f"Download the repo, and serve from the folder that holds {FILE}."


def find(run: EngineRun, checkpoint: Checkpoint) -> Iterator[Finding]:
    """One finding for a file that is there, or one that the draft's config calls for and is not.

    Source: SGLang 0.5.23 `srt/speculative/dflash_worker_v2.py`, `_maybe_merge_trained_mask_embedding`.
    """
    draft = read_draft(run, checkpoint)
    if draft is None:
        return
    if FILE in checkpoint.names:
        yield _present(draft, checkpoint)
    elif checkpoint.names and draft.inner.get("attention_value_scale") is not None:
        yield _finding(
            draft,
            "warning",
            "attention_value_scale is a key of MiMo's drafts, which are trained with an embedding of their"
            f" own for the mask token, and there is no {FILE} beside the weights: {draft.engine} fills the"
            " blocks with the target's row.",
            f"Copy {FILE} from the original draft into this folder.",
        )


def _present(draft: Draft, checkpoint: Checkpoint) -> Finding:
    if draft.dspark:
        message = f"DFlash's worker alone reads the file: {draft.engine} does not use it for a DSpark draft."
        return _finding(draft, "warning", message, "Serve the draft with an engine that reads it.")
    if checkpoint.kind == "hub":
        message = f"{draft.engine} reads the file from a local folder alone, not by the name of a Hub repo."
        return _finding(draft, "warning", message, SERVE_LOCALLY)
    token = draft.either("mask_token_id")
    message = (
        f"{draft.engine} writes the file's row over row {token} of the target's own embedding, and does not"
        " start if the file says another mask_token_id."
    )
    hint = "Serve from this folder, not by a repo's name, and keep the file beside config.json."
    return _finding(draft, "note", message, hint)


def _finding(draft: Draft, severity: Severity, message: str, hint: str) -> Finding:
    return Finding("mask-embedding", severity, draft.engine, FILE, message, hint, (FILE,))
