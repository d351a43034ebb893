r"""An entry of the ignore list would have to leave layers dense, and does not.

A quantizer matches the list against the module names of the model, an engine against the names under which
it builds: fused, and in some versions without their layer.

## Why it matters

The layer is dense on disk and built quantized. Its tensors are dropped or mangled.

## Example

Before: the entry matches `layers.0.self_attn.q_proj` in the checkpoint. SGLang 0.5.23 looks up `qkv_proj`.

    "ignore": ["re:.*self_attn\\.(q|k|v)_proj$"]

After, one spelling for each engine:

    "ignore": ["re:.*self_attn\\.(q|k|v)_proj$", "re:(.*\\.)?qkv_proj$"]

## How to fix

Add what the finding suggests: every engine was replayed with it. Where it suggests nothing, keep the entry,
and add one for the names that the message quotes.
"""

from collections.abc import Iterable, Iterator, Mapping

from dflash_audit.diagnosis.ignore_lists import matches
from dflash_audit.diagnosis.stored import State, is_linear, stored_modules, takes_dense
from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding
from dflash_audit.fold import fold, title
from dflash_audit.loadplan import LoadPlan
from dflash_audit.quantization.config import QuantConfig
from dflash_audit.tree import Module


def find(run: EngineRun) -> Iterator[Finding]:
    """One finding for all entries that miss layers which are looked up in the same way."""
    if run.quant_config is None or run.plan is None:
        return
    config, stranded = run.quant_config, _stranded(run.plan)
    asked = [m for m in run.plan.modules.values() if m.linear is not None and m.prefix is not None]
    groups: dict[tuple[str, int], dict[str, set[str]]] = {}
    for entry in config.left_dense:
        meant = {name: module for name, module in stranded.items() if _misses(config, entry, name, module)}
        if meant:
            reached = sum(_reaches(config, entry, module) for module in asked)
            key = (_looked_up(config, meant.values()), reached)
            groups.setdefault(key, {}).setdefault(entry, set()).update(meant)
    for (looked_up, reached), entries in groups.items():
        yield _finding(run, entries, looked_up, f"{reached} of the {len(asked)} linears that it asks about")


def _stranded(plan: LoadPlan) -> Mapping[str, Module]:
    """Module name on disk -> the linear it is for, where it is dense on disk and built quantized."""
    found = {}
    for stored in stored_modules(plan.tensors).values():
        module = plan.modules.owner(f"{stored.name}.weight")
        if module is None or module.prefix is None or not is_linear(module):
            continue
        if stored.state is State.DENSE and not takes_dense(module):
            found[stored.name] = module
    return found


def _misses(config: QuantConfig, entry: str, name: str, module: Module) -> bool:
    """Whether an entry names a layer as a checkpoint or another engine does, and not as this one."""
    if _reaches(config, entry, module):
        return False
    parts = name.split(".")
    # SGLang asks about `o_proj` alone, and takes an entry for the end of a name too.
    ends = (".".join(parts[at:]) for at in range(len(parts)))
    return any(matches(config, entry, spelling) for spelling in (f"model.{name}", module.name, *ends))


def _reaches(config: QuantConfig, entry: str, module: Module) -> bool:
    assert module.prefix is not None
    looked_up = config.names_looked_up(module.prefix)
    return entry == module.prefix or any(matches(config, entry, name) for name in looked_up)


def _looked_up(config: QuantConfig, modules: Iterable[Module]) -> str:
    prefixes = dict.fromkeys(module.prefix for module in modules if module.prefix is not None)
    names = dict.fromkeys(name for prefix in prefixes for name in config.names_looked_up(prefix))
    return ", ".join(repr(name) for name in fold(names))


def _finding(run: EngineRun, entries: Mapping[str, set[str]], looked_up: str, reach: str) -> Finding:
    modules = len(set().union(*entries.values()))
    those = "a module that is" if modules == 1 else f"{modules} modules that are"
    named = "The entry names" if len(entries) == 1 else f"{len(entries)} entries name"
    reaches = "It reaches" if len(entries) == 1 else "Each reaches"
    patterns = any(entry.startswith("re:") for entry in entries)
    return Finding(
        rule="dead-ignore-entry",
        severity="warning",
        engine=run.engine,
        subject=", ".join(entries) if patterns else title(entries),
        message=(
            f"{named} {those} dense on disk and that {run.engine} builds quantized:"
            f" it looks for {looked_up}. {reaches} {reach}."
        ),
        hint="Keep the entry for other engines, and add one that matches those names.",
        subjects=tuple(entries),
    )
