"""Attention sinks that are on disk, under the key by which every engine builds them.

Source: SGLang 0.5.23 `srt/models/dflash.py`, `DFlashAttention`, which builds those of a Nemotron 3.5 draft by
a key at the top too; vLLM 0.33.0 `model_executor/models/qwen3_dflash.py`, `DFlashQwen3DecoderLayer`.
"""

from collections.abc import Iterator
from typing import Final

from dflash_audit.facts import Facts
from dflash_audit.repairs.edit import Proposal, edit

PATH: Final = ("dflash_config", "attention_sink_bias")


def propose(facts: Facts) -> Iterator[Proposal]:
    """The key, where a load refuses the sinks."""
    refused = {
        refusal.tensor for run in facts.runs if run.plan is not None for refusal in run.plan.refusals
    } - {None}
    if any(str(name).endswith(".attention_sink_bias") for name in refused):
        why = "The checkpoint holds attention sinks, and an engine builds them by this key alone."
        found = edit(facts.checkpoint.config, PATH, True, why)
        yield (found,) if found else ()
