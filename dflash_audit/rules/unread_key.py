"""A key that would change the draft is not read by this engine.

Engines and exporters have keys of their own. One that this engine does not read, or reads at another place,
has no effect and no warning. The finding appears only where the key would change what this engine does.

## Why it matters

The draft loads whole, serves, and accepts less than it was trained for: it attends in another way, its
tokens are shifted by one, or its own vocabulary is not used.

## Example

Before: SGLang does not read `use_swa`, and every layer attends to everything.

    "dflash_config": {"use_swa": true, "swa_window_size": 1024}

After:

    "layer_types": ["sliding_attention", "sliding_attention"],
    "sliding_window": 1024,
    "use_sliding_window": true

## How to fix

Say the same in the key that this engine reads: the finding names it. Where there is none, this engine
cannot serve the draft as it was trained: name the engine that can in the model card.
"""

from collections.abc import Iterator

from dflash_audit.diagnosis.sglang_draft import read_draft
from dflash_audit.diagnosis.unread_keys import UNREAD
from dflash_audit.diagnosis.vllm_draft import is_vllm
from dflash_audit.diagnosis.vllm_unread_keys import unread
from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding
from dflash_audit.sources.checkpoint import Checkpoint


def find(run: EngineRun, checkpoint: Checkpoint) -> Iterator[Finding]:
    """One finding a key that matters and is not read.

    Public record: sglang#40144 (`sample_from_anchor`).
    """
    for key, meaning, follows, mend in unread(run) if is_vllm(run) else ():
        message = f"{run.engine} does not read {key}, {meaning}: {follows}."
        yield Finding("unread-key", "warning", run.engine, key, message, mend, (key,))
    draft = read_draft(run, checkpoint)
    for row in UNREAD if draft else ():
        assert draft is not None
        consequence = row.matters(draft)
        if consequence is not None:
            yield Finding(
                rule="unread-key",
                severity=row.severity,
                engine=run.engine,
                subject=row.key,
                message=f"{run.engine} does not read {row.key}, {row.meaning}: {consequence}.",
                hint=row.mend,
                subjects=(row.key,),
            )
