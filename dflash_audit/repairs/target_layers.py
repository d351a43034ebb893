"""`target_layer_ids`, where another engine's list tells as many taps as `fc` was made for."""

from collections.abc import Iterator

from dflash_audit.diagnosis.sglang_draft import read_draft, whole_list
from dflash_audit.facts import Facts
from dflash_audit.repairs.edit import Proposal, edit

KEY = "eagle_aux_hidden_state_layer_ids"


def propose(facts: Facts) -> Iterator[Proposal]:
    """The other list's ids less one; nothing where it is not there or of another length than `fc`."""
    for run in facts.runs:
        draft = read_draft(run, facts.checkpoint)
        aux = whole_list(draft.raw.get(KEY)) if draft else None
        if draft is None or aux is None or min(aux) < 1 or draft.made_for != len(aux):
            continue
        at_top = draft.raw.get("target_layer_ids") is not None and "target_layer_ids" not in draft.inner
        path = ("target_layer_ids",) if at_top else ("dflash_config", "target_layer_ids")
        why = (
            f"fc was made for {draft.made_for} tapped layers, and {KEY} names as many: {aux}, each by the"
            " layer that comes next."
        )
        found = edit(draft.raw, path, [layer - 1 for layer in aux], why)
        yield (found,) if found else ()
        return
