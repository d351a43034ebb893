"""A table of the draft has another number of rows than the target has tokens.

The codebooks of a selector, the Markov tables of a DSpark draft, the projector of a Domino draft and the
embedding of a Nemotron 3.5 draft are read by the ids that the target's head and tokenizer give.

## Why it matters

An id beyond a table reads what lies behind it, which on a GPU is an assert in the middle of a request. A
DSpark draft's bias has another length than the target's logits, and a Domino draft's vocabulary is compared
as the server starts.

## Example

Before: a draft whose config lost `vocab_size`, which its class takes for 151936, beside a target of 248320.

    "vocab_size": 151936

After:

    "vocab_size": 248320

## How to fix

Serve the draft with the model that it was trained for. If the tables are right and the key is not, correct
`vocab_size`.
"""

from collections.abc import Iterator

from dflash_audit.diagnosis.sglang_draft import SELECTORS, whole
from dflash_audit.diagnosis.with_target import Pair, read_pair
from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.finding import Finding, Severity
from dflash_audit.sources.checkpoint import Checkpoint

HINT = "Serve the draft with the model that it was trained for, and name that one's vocab_size."


def find(run: EngineRun, checkpoint: Checkpoint, conditions: Conditions) -> Iterator[Finding]:
    """One finding if the draft has such a table, and a note if its config alone differs.

    Source: SGLang 0.5.23 `srt/models/dflash.py`, `CandidateSelector`; `srt/models/dspark.py`,
    `compute_base_logits`; `srt/speculative/domino_utils.py`, `validate_domino_runtime`.
    """
    pair = read_pair(run, checkpoint, conditions)
    if pair is None or pair.target.vocab_size is None:
        return
    own, theirs = whole(pair.draft.config.get("vocab_size")), pair.target.vocab_size
    if own is None or own == theirs:
        return
    outcome = _outcome(pair, own, theirs)
    if outcome is not None:
        yield _finding(pair, "error", own, outcome)
    elif pair.draft.given("vocab_size") and not _reads_a_table(pair):
        yield _finding(
            pair,
            "note",
            own,
            f"{run.engine} reads no table of this draft by it, but a draft is trained for one vocabulary",
        )


def _reads_a_table(pair: Pair) -> bool:
    draft = pair.draft
    domino = draft.either("projector_type") == "domino"
    return domino or draft.dspark or draft.nemotron or draft.model_class in SELECTORS


def _outcome(pair: Pair, own: int, theirs: int) -> str | None:
    draft = pair.draft
    if draft.either("projector_type") == "domino":
        return f"{draft.engine} wants them equal for a Domino draft, and does not start"
    if draft.dspark:
        return f"the Markov head's bias does not fit the target's logits, and {draft.engine} fails at them"
    if own > theirs:
        return None
    if draft.model_class in SELECTORS:
        return f"ids of the target from {own} on lie beyond the selector's codebooks"
    if draft.nemotron:
        return f"ids of the target from {own} on lie beyond the draft's own embedding"
    return None


def _finding(pair: Pair, severity: Severity, own: int, outcome: str) -> Finding:
    message = f"vocab_size is {own}, and that of the target {pair.target.vocab_size}: {outcome}."
    return Finding(
        "target-vocabulary", severity, pair.draft.engine, "vocab_size", message, HINT, ("vocab_size",)
    )
