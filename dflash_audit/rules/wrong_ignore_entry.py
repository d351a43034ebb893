r"""An entry of the ignore list keeps layers dense that are quantized on disk.

The list says which layers the quantizer left alone. An entry that says more than that makes the engine
build a dense layer for tensors that are packed, or scaled.

## Why it matters

The packed tensors have no place and are dropped, or numbers that need a scale are copied without it. The
layer runs on what was in memory, or on numbers that mean something else.

## Example

Before: the attention is dense on disk but for `o_proj`, which the recipe quantized.

    "ignore": ["re:.*self_attn.*"]

After:

    "ignore": ["re:(.*\\.)?(q_proj|k_proj|v_proj|qkv_proj)$"]

## How to fix

Make the list say what is on disk: what the finding suggests was replayed on every engine. Or leave those
layers out of the recipe, and quantize again.
"""

from collections.abc import Iterator

from dflash_audit.diagnosis.ignore_lists import matches
from dflash_audit.diagnosis.stored import State, built_otherwise
from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding
from dflash_audit.fold import title
from dflash_audit.tree import Module


def find(run: EngineRun) -> Iterator[Finding]:
    """One finding an entry that keeps layers dense that are quantized on disk."""
    if run.quant_config is None or run.plan is None:
        return
    odd = built_otherwise(run)
    modules = [run.plan.modules[name] for name, state in odd.items() if state is State.QUANTIZED]
    for entry in run.quant_config.left_dense:
        kept = [module for module in modules if _keeps(run, entry, module)]
        if kept:
            yield _finding(run, entry, kept)


def _keeps(run: EngineRun, entry: str, module: Module) -> bool:
    config = run.quant_config
    if config is None or module.prefix is None:
        return False
    return any(matches(config, entry, name) for name in config.names_looked_up(module.prefix))


def _finding(run: EngineRun, entry: str, kept: list[Module]) -> Finding:
    names = title(module.name for module in kept)
    are = "is" if len(kept) == 1 else "are"
    return Finding(
        rule="wrong-ignore-entry",
        severity="warning",
        engine=run.engine,
        subject=entry,
        message=(
            f"The entry makes {run.engine} build {names} dense, which {are} quantized on disk:"
            " the tensors have no place there."
        ),
        hint="Narrow the entry to the layers that are dense on disk, or leave those out of the recipe.",
        subjects=(entry,),
    )
