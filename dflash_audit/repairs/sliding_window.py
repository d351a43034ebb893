"""`use_sliding_window`, without which the config's class drops the window of layers that slide."""

from collections.abc import Iterator

from dflash_audit.diagnosis.sglang_draft import read_draft, whole
from dflash_audit.facts import Facts
from dflash_audit.repairs.edit import Proposal, edit


def propose(facts: Facts) -> Iterator[Proposal]:
    """The key, where a window is given, layers slide, and the engine sees no window."""
    for run in facts.runs:
        draft = read_draft(run, facts.checkpoint)
        if draft is None or whole(draft.raw.get("sliding_window")) is None:
            continue
        if draft.config.get("sliding_window") is None and any(a.sliding for a in draft.attention()):
            why = (
                f"layer_types has sliding layers and sliding_window is {draft.raw['sliding_window']}, which"
                " the config's class drops unless this is true."
            )
            found = edit(facts.checkpoint.config, ("use_sliding_window",), True, why)
            yield (found,) if found else ()
            return
