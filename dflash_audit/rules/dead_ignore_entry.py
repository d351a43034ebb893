r"""An entry of the ignore list would have to leave layers dense, and does not.

A quantizer matches the list against the module names of the model, an engine against the names under which
it builds: fused, and in some versions without their layer.

## Why it matters

The layer is dense on disk and built quantized. Its tensors are dropped or mangled.

## Example

Before: the entry matches `layers.0.self_attn.q_proj` in the checkpoint. SGLang 0.5.23 looks up `qkv_proj`.

    "ignore": ["re:.*self_attn\\.(q|k|v)_proj$"]

After, one spelling for each engine:

    "ignore": ["re:.*self_attn\\.(q|k|v)_proj$", "re:.*qkv_proj$"]

## How to fix

Keep the entry, and add one for the names that the message quotes.
"""

from collections.abc import Iterator, Mapping

from dflash_audit.drops import owner
from dflash_audit.dtypes import DENSE_FLOATS, TORCH
from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding
from dflash_audit.fold import fold
from dflash_audit.loadplan import LoadPlan
from dflash_audit.quantization.config import QuantConfig
from dflash_audit.refusal import NotModelled, Refused
from dflash_audit.tree import Module


def find(run: EngineRun) -> Iterator[Finding]:
    """One finding an entry that would have to leave layers dense, and does not."""
    if run.quant_config is None or run.plan is None:
        return
    config, stranded = run.quant_config, _stranded(run.plan)
    asked = [m.prefix for m in run.plan.modules.values() if m.linear is not None and m.prefix is not None]
    for entry in config.left_dense:
        meant = [m for name, m in stranded.items() if _names(config, entry, name, m)]
        if meant and not any(_reaches(config, entry, prefix) for prefix in asked):
            yield _finding(config, run, entry, meant)


def _stranded(plan: LoadPlan) -> Mapping[str, Module]:
    """Module name on disk -> the linear it is for, where it is dense on disk and built quantized."""
    found = {}
    for tensor in plan.tensors:
        module = owner(plan.modules, tensor.name)
        dense = tensor.name.endswith(".weight") and TORCH.get(tensor.dtype) in DENSE_FLOATS
        if dense and module is not None and module.prefix is not None and not _takes_dense(module):
            found[tensor.name.removeprefix("model.").rpartition(".")[0]] = module
    return found


def _takes_dense(module: Module) -> bool:
    return any(p.name == "weight" and p.dtype in DENSE_FLOATS for p in module.parameters)


def _names(config: QuantConfig, entry: str, name: str, module: Module) -> bool:
    """Whether an entry names a layer as the checkpoint or as another engine does."""
    return any(_matches(config, entry, spelling) for spelling in (name, module.name))


def _reaches(config: QuantConfig, entry: str, prefix: str) -> bool:
    return entry == prefix or any(_matches(config, entry, name) for name in config.names_looked_up(prefix))


def _matches(config: QuantConfig, entry: str, name: str) -> bool:
    try:
        return config.leaves_dense(entry, name)
    except (Refused, NotModelled):
        return False  # a pattern that the build never reached


def _finding(config: QuantConfig, run: EngineRun, entry: str, meant: list[Module]) -> Finding:
    prefixes = dict.fromkeys(module.prefix for module in meant if module.prefix is not None)
    names = dict.fromkeys(name for prefix in prefixes for name in config.names_looked_up(prefix))
    asked = ", ".join(repr(name) for name in fold(names))
    return Finding(
        rule="dead-ignore-entry",
        severity="warning",
        engine=run.engine,
        subject=entry,
        message=(
            f"The entry is meant for {len(meant)} modules that are dense on disk, and {run.engine} builds"
            f" them quantized: it looks them up as {asked}, which the entry does not match."
        ),
        hint="Keep the entry for other engines, and add one that matches those names.",
        subjects=(entry,),
    )
