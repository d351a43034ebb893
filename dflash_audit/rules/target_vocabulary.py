"""A table of the draft has another number of rows than the target has tokens.

The codebooks of a selector, the Markov tables of a DSpark draft, the projector of a Domino draft and the
embedding of a Nemotron 3.5 draft are read by the ids that the target's head and tokenizer give, and so is an
embedding of the draft's own, which vLLM uses where there is one.

## Why it matters

An id beyond a table reads what lies behind it, which on a GPU is an assert in the middle of a request. In
SGLang a DSpark draft's bias has another length than the target's logits, and a Domino draft's vocabulary is
compared as the server starts. vLLM gives a draft of DSpark, Gemma 4 or XPress the target's embedding
only where the draft has no more tokens, and the head only where both have as many; else the checkpoint has to
bring them. It gives a plain draft no more logits than the target's head has.

## Example

Before: a draft whose config lost `vocab_size`, which its class takes for 151936, beside a target of 248320.

    "vocab_size": 151936

After:

    "vocab_size": 248320

## How to fix

Serve the draft with the model that it was trained for. If the tables are right and the key is not, correct
`vocab_size`.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from dflash_audit.diagnosis.sglang_draft import SELECTORS, Draft, whole
from dflash_audit.diagnosis.vllm_draft import GEMMA4_DRAFT
from dflash_audit.diagnosis.vllm_pair import Pair as VLLMPair
from dflash_audit.diagnosis.vllm_pair import read_vllm_pair
from dflash_audit.diagnosis.with_target import Pair, read_pair
from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.engines.vllm.padding import padded
from dflash_audit.finding import Finding, Severity
from dflash_audit.sources.checkpoint import Checkpoint

KEY: Final = "vocab_size"
ANSWERS: Final = "draft_vocab_size"
PLAIN: Final = "DFlashDraftModel"

TABLES_IN_VLLM: Final[Mapping[str, str]] = {
    **dict.fromkeys(SELECTORS, "the selector's codebooks"),
    "Qwen3DSparkModel": "the Markov head's table of tokens",
    GEMMA4_DRAFT: "the Markov head's table of tokens",
    "Qwen3XPressModel": "the refiner's table of tokens",
}
"""Draft class -> its table of `vocab_size` rows, read by ids of the target."""

HINT: Final = "Serve the draft with the model that it was trained for, and name that one's vocab_size."


def find(run: EngineRun, checkpoint: Checkpoint, conditions: Conditions) -> Iterator[Finding]:
    """One finding if the draft has such a table, and a note if its config alone differs.

    Source: SGLang 0.5.23 `srt/models/dflash.py`, `CandidateSelector`; `srt/models/dspark.py`,
    `compute_base_logits`; `srt/speculative/domino_utils.py`, `validate_domino_runtime`. vLLM 0.33.0
    `model_executor/models/qwen3_dflash.py` (`compute_logits`), `qwen3_dflash2.py`, `qwen3_dspark.py`,
    `qwen3_xpress.py`, `v1/worker/gpu/spec_decode/dspark/utils.py` (`load_dspark_model`).
    """
    served = read_vllm_pair(run, checkpoint, conditions)
    if served is not None and served.target.vocab_size is not None:
        yield from _in_vllm(served, served.target.vocab_size, conditions.tp)
    pair = read_pair(run, checkpoint, conditions)
    if pair is None or pair.target.vocab_size is None:
        return
    own, theirs = whole(pair.draft.config.get("vocab_size")), pair.target.vocab_size
    if own is None or own == theirs:
        return
    outcome = _outcome(pair, own, theirs)
    if outcome is not None:
        yield _finding(pair.draft, "error", KEY, own, theirs, outcome)
    elif pair.draft.given("vocab_size") and not _reads_a_table(pair):
        yield _finding(
            pair.draft,
            "note",
            KEY,
            own,
            theirs,
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


def _in_vllm(pair: VLLMPair, theirs: int, ranks: int) -> Iterator[Finding]:
    draft, own, answers = pair.draft, pair.vocabulary, pair.answers
    if own is None or answers is None:
        return
    key = KEY if draft.config.get(ANSWERS) in (None, own) else ANSWERS
    beyond, lacking = _beyond(pair, own, theirs, ranks), _lacking(pair)
    by_answers = ["head"] if key == ANSWERS and "head" in lacking else []
    by_tokens = [what for what in lacking if what not in by_answers]
    said = ([beyond] if beyond else []) + ([_in_memory(draft, by_tokens)] if by_tokens else [])
    if said:
        yield _finding(draft, "error", KEY, own, theirs, "; ".join(said))
    if by_answers:
        yield _finding(draft, "error", ANSWERS, answers, theirs, _in_memory(draft, by_answers))
    if draft.model_class != PLAIN or not pair.borrows_head:
        return
    if answers > padded(theirs):
        outcome = f"the target's head has no logits for all of them, and {draft.engine} does not start"
        yield _finding(draft, "error", key, answers, theirs, outcome)
    elif answers < theirs and not pair.maps_answers:
        outcome = f"{draft.engine} drafts no token from {answers} on"
        yield _finding(draft, "note", key, answers, theirs, outcome)


def _beyond(pair: VLLMPair, own: int, theirs: int, ranks: int) -> str | None:
    table = TABLES_IN_VLLM.get(pair.draft.model_class)
    # On several ranks an id beyond an embedding is no rank's, and comes out as zeros.
    embeds = pair.own_embedding and ranks == 1 and padded(own) < theirs
    if own >= theirs or not (table or embeds):
        return None
    return f"ids of the target from {own} on lie beyond {table or 'the embedding that it brings'}"


def _lacking(pair: VLLMPair) -> list[str]:
    """What the draft neither takes from the target nor brings.

    Of a draft that vLLM does not load as a DSpark draft absent-head tells the same.
    """
    if not pair.loaded_as_dspark or pair.plan is None or pair.plan.refusals:
        return []
    there = {
        "embedding": pair.borrows_embedding or pair.brings_embedding,
        "head": pair.borrows_head or pair.brings_head,
    }
    return [what for what, has in there.items() if not has]


def _in_memory(draft: Draft, lacking: list[str]) -> str:
    return (
        f"{draft.engine} does not take the target's {' and its '.join(lacking)} then, and runs on what was in"
        f" memory, for the checkpoint brings {'none' if len(lacking) == 1 else 'neither'}"
    )


def _finding(draft: Draft, severity: Severity, key: str, own: int, theirs: int, outcome: str) -> Finding:
    target = "that of the target" if key == KEY else "the target's vocab_size"
    message = f"{key} is {own}, and {target} {theirs}: {outcome}."
    return Finding("target-vocabulary", severity, draft.engine, key, message, HINT, (key,))
