r"""The quantization config brings a map of fused layers, and the engine overwrites it.

`packed_modules_mapping` tells which shards a fused layer is made of, so that an entry for `q_proj` reaches
`qkv_proj`. SGLang puts the map of the model's class in its place, and in 0.5.23 that of a DFlash draft is
empty.

## Why it matters

Entries that name shards do not reach the fused layer. A layer that is dense on disk is built quantized, or
a target that names shards matches nothing.

## Example

Before:

    "packed_modules_mapping": {"qkv_proj": ["q_proj", "k_proj", "v_proj"]},
    "ignore": ["re:.*(q|k|v)_proj$"]

After: the map may stay, the entries name the fused layer too.

    "ignore": ["re:.*(q|k|v)_proj$", "re:(.*\\.)?qkv_proj$"]

## How to fix

Name the fused layer and its shards both. Do not count on a map in config.json.
"""

from collections.abc import Iterator, Mapping

from dflash_audit.diagnosis.sglang_draft import is_sglang
from dflash_audit.diagnosis.stored import built_otherwise
from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding
from dflash_audit.sources.checkpoint import Checkpoint

KEY = "packed_modules_mapping"


def find(run: EngineRun, checkpoint: Checkpoint) -> Iterator[Finding]:
    """One finding if the map would expand a fused layer that the engine does not, and the draft suffers."""
    own = checkpoint.config.get("quantization_config")
    mapping = own.get(KEY) if isinstance(own, Mapping) else None
    if not is_sglang(run) or run.quant_config is None or not isinstance(mapping, Mapping):
        return
    unread = [
        fused
        for fused, shards in mapping.items()
        if isinstance(shards, list) and len(run.quant_config.names_looked_up(fused)) < len(shards)
    ]
    if unread and _suffer(run, unread):
        yield Finding(
            rule="unread-packed-mapping",
            severity="warning",
            engine=run.engine,
            subject=KEY,
            message=(
                f"{run.engine} overwrites this map with that of {run.model_class}, which has no entry for"
                f" {', '.join(unread)}: an entry that names shards does not reach the fused layer."
            ),
            hint="Name the fused layers in the ignore list and in the targets, beside their shards.",
            subjects=(KEY,),
        )


def _suffer(run: EngineRun, fused: list[str]) -> bool:
    """Whether the draft is not built, or builds one of these fused layers otherwise than it is on disk."""
    if run.plan is None:
        return run.refusal is not None and run.refusal.stage == "build"
    odd = built_otherwise(run)
    return any(name.rpartition(".")[2] in fused for name in odd)
