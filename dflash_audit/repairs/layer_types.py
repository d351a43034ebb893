"""`layer_types` of another length than the draft has layers, where all of its layers are of one kind."""

import re
from collections.abc import Iterator
from typing import Final

from dflash_audit.diagnosis.sglang_draft import whole
from dflash_audit.facts import Facts
from dflash_audit.how_many import how_many
from dflash_audit.repairs.edit import Proposal, edit

KEY: Final = "layer_types"
LAYER: Final = re.compile(r"(?:model\.)?layers\.(\d+)\.")


def propose(facts: Facts) -> Iterator[Proposal]:
    """One entry a layer, of the kind that all entries are; nothing where they differ."""
    config = facts.checkpoint.config
    written, layers = config.get(KEY), whole(config.get("num_hidden_layers"))
    entries = [written] if isinstance(written, str) else written
    stored = {m[1] for t in facts.checkpoint.tensors if (m := LAYER.match(t.name))}
    # A depth that the tensors contradict is what is wrong.
    if not isinstance(entries, list) or not layers or len(stored) != layers:
        return
    kinds = {each for each in entries if isinstance(each, str)}
    if len(kinds) == 1 and all(isinstance(each, str) for each in entries):
        kind = kinds.pop()
        why = f"The draft has {how_many(layers, 'layer')}, and the list {len(entries)}, all of one kind."
        doubt = f"No tensor tells what the others are: this has them all as {kind}."
        found = edit(config, (KEY,), [kind] * layers, why, doubt)
        yield (found,) if found else ()
