"""A part of what a reduced vocabulary needs is not there.

A draft with a `draft_vocab_size` of its own answers with fewer tokens than its target has. It brings a head
of so many rows, and `d2t`, which says of each row which token of the target it is.

## Why it matters

vLLM loads such a draft without either. Where the head is missing it takes the first rows of the target's,
which are other tokens than the ones that `d2t` names. Without `d2t` the rows stand for the target's first
tokens.

## Example

Before: an export lost the table.

    lm_head.weight [32000, 4096]

After:

    d2t [32000], lm_head.weight [32000, 4096]

## How to fix

Export `d2t` and `lm_head.weight` again from the training checkpoint. A draft over the whole vocabulary has no
`draft_vocab_size`.
"""

from collections.abc import Iterator
from typing import Final

from dflash_audit.diagnosis.vllm_draft import is_vllm
from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding, Severity

KEY: Final = "draft_vocab_size"
TABLE: Final = "draft_id_to_target_id"


def find(run: EngineRun) -> Iterator[Finding]:
    """One finding for a draft that vLLM loads; of a DSpark draft it refuses the load itself.

    Source: vLLM 0.33.0 `model_executor/models/qwen3_dflash.py` (`load_weights`, `compute_logits`), and
    `v1/worker/gpu/spec_decode/eagle/utils.py`, `_should_share`.
    """
    plan = run.plan
    if not is_vllm(run.engine) or plan is None or run.refusal is not None or TABLE not in plan.slots:
        return
    own_head = any(name.startswith("lm_head.") for name in plan.filled())
    mapped = TABLE in plan.filled()
    rows = plan.slots[TABLE].numel
    if mapped and not own_head:
        yield _finding(
            run,
            "error",
            f"d2t says which tokens {rows} answers are, and no tensor holds a head for them: {run.engine}"
            f" takes the first {rows} rows of the target's head, which are other tokens",
            "Add lm_head.weight, of as many rows.",
        )
    elif not mapped:
        which = "the rows of the draft's head" if own_head else f"the first {rows} rows of the target's head"
        yield _finding(
            run,
            "warning",
            f"{KEY} is {rows}, and there is no d2t: {run.engine} takes {which} for the target's first tokens,"
            " and drafts no other",
            f"Add d2t, or remove {KEY} if the draft answers with the whole vocabulary.",
        )


def _finding(run: EngineRun, severity: Severity, what: str, hint: str) -> Finding:
    return Finding("reduced-vocabulary", severity, run.engine, KEY, f"{what}.", hint, (KEY,))
