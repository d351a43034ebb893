"""The layers to leave dense are listed under a key that the method does not read.

Each method reads its list under keys of its own, and of several that it knows only the first that is there,
be it empty: `fp8` reads `ignored_layers`, else `modules_to_not_convert`; compressed-tensors `ignore`;
ModelOpt FP8 `ignore` in config.json and `exclude_modules` in hf_quant_config.json.

## Why it matters

The list has no effect. Layers that are dense on disk are built quantized, and their tensors are dropped or
mangled.

## Example

Before: the empty first key hides the second.

    "quant_method": "fp8", "ignored_layers": [], "modules_to_not_convert": ["q_proj", "k_proj", "v_proj"]

After:

    "quant_method": "fp8", "modules_to_not_convert": ["q_proj", "k_proj", "v_proj"]

## How to fix

Write the list under the key that the finding names. Exporters that serve several engines write it under
each.
"""

from collections.abc import Iterator

from dflash_audit.diagnosis.ignore_lists import LIST_KEYS, config_at, entries, entries_at, place_of, with_list
from dflash_audit.diagnosis.stored import faults
from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.engines import LIVE, engine
from dflash_audit.finding import Finding
from dflash_audit.how_many import how_many
from dflash_audit.sources.checkpoint import Checkpoint


def find(run: EngineRun, checkpoint: Checkpoint, conditions: Conditions) -> Iterator[Finding]:
    """One finding a list that is not read and that would mend layers where it was."""
    place = place_of(checkpoint, run.quantization)
    if run.engine in LIVE or place is None or not faults(run):
        return
    read, config = entries_at(checkpoint, place), config_at(checkpoint, place)
    for key in LIST_KEYS:
        unread = [entry for entry in entries(config.get(key)) if entry not in read]
        if key == place.key or not unread:
            continue
        moved = with_list(checkpoint, place, (*read, *unread), all_linear=False)
        if faults(engine(run.engine).replay(moved, conditions)) >= faults(run):
            continue
        state = "which is there, be it empty" if place.key in config else "which is not there"
        yield Finding(
            rule="unread-ignore-list",
            severity="warning",
            engine=run.engine,
            subject=key,
            message=(
                f"{key} lists {how_many(len(unread), 'name')} that nobody reads: {run.quantization} on"
                f" {run.engine} reads {place.name}, {state}. Layers that are dense on disk are not left"
                " dense."
            ),
            hint=f"Write the list under {place.name} as well: replayed so, it reaches them.",
            subjects=(key,),
        )
