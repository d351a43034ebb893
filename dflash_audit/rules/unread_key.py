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

from collections.abc import Iterable, Iterator

from dflash_audit.diagnosis import unread_keys, unread_keys_0_5_19, vllm_unread_keys
from dflash_audit.diagnosis.sglang_draft import Draft, read_draft
from dflash_audit.diagnosis.unread_keys import UnreadKey
from dflash_audit.diagnosis.vllm_draft import GEMMA4_DRAFT
from dflash_audit.diagnosis.vllm_draft import read_draft as read_by_vllm
from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding
from dflash_audit.sources.checkpoint import Checkpoint


def find(run: EngineRun, checkpoint: Checkpoint) -> Iterator[Finding]:
    """One finding a key that matters and is not read.

    Public record: sglang#40144 (`sample_from_anchor`).
    """
    draft = read_by_vllm(run, checkpoint)
    # The keys of the table are those of drafts of the Qwen 3 kind.
    if draft is not None and draft.model_class != GEMMA4_DRAFT:
        yield from _unread(draft, vllm_unread_keys.UNREAD)
    draft = read_draft(run, checkpoint)
    if draft is None:
        return
    older = run.engine == unread_keys_0_5_19.ENGINE
    # What it refuses before the load it has no code for: that is said already.
    if older and run.plan is not None:
        yield from _unread(draft, unread_keys_0_5_19.UNREAD)
    yield from _unread(draft, unread_keys_0_5_19.UNREAD_BY_ANY if older else unread_keys.UNREAD)


def _unread(draft: Draft, rows: Iterable[UnreadKey]) -> Iterator[Finding]:
    for row in rows:
        consequence = row.matters(draft)
        if consequence is None:
            continue
        reads = f" {row.reader.engine} reads it." if row.reader else ""
        yield Finding(
            rule="unread-key",
            severity=row.severity,
            engine=draft.engine,
            subject=row.key,
            message=f"{draft.engine} does not read {row.key}, {row.meaning}: {consequence}.{reads}",
            hint=row.mend,
            subjects=(row.key,),
        )
