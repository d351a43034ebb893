"""The readers of a draft's config, those of every engine: an input picks a case and edits its JSON files.

One engine reads it, settles its quantization and builds the draft; of its weights there is one tensor.
"""

import json
from typing import Final

from dflash_audit.engines import ENGINES, engine
from dflash_audit.errors import Unreadable
from dflash_audit.sources.checkpoint import CONFIG
from dflash_audit.sources.reading import read_folder
from fuzzing import drafted
from fuzzing.cases import recorded
from fuzzing.draw import Draw
from fuzzing.edits import edited_files
from fuzzing.endless import endless_at_once
from fuzzing.folder import MemoryFolder

GROUPS: Final = ("cases", "published", "random-vllm")
ONE: Final = {"norm.weight": ("BF16", (64,))}


def check(data: bytes) -> None:
    """Told apart by its words or replayed, and left as it was."""
    draw = Draw(data)
    name = draw.one_of([*ENGINES])
    case = draw.one_of(recorded(*GROUPS))
    files = edited_files(case.files, draw)
    conditions = drafted.conditions(draw)
    try:
        checkpoint = read_folder(MemoryFolder(files, ONE))
        before = json.dumps(checkpoint.config)
        with endless_at_once():
            run = engine(name).replay(checkpoint, conditions)
    except Unreadable as refused:
        assert refused.message.isprintable()
        return
    assert json.dumps(checkpoint.config) == before, CONFIG
    assert run.skipped is None or run.skipped
    assert run.refusal is None or run.refusal.reason
