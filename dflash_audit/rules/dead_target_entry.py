r"""A target of the quantization config would have to quantize layers, and does not.

compressed-tensors names the layers of a config group by class (`Linear`) or by module. An engine matches
module names against those under which it builds: fused, and in some versions without their layer.

## Why it matters

SGLang refuses a layer that no target matches and no entry ignores. Where the layer is ignored too, it is
built dense, and its packed tensors have no place.

## Example

Before: the target matches `layers.0.self_attn.q_proj` in the checkpoint. SGLang 0.5.23 asks about
`qkv_proj`.

    "config_groups": {"group_0": {"targets": ["re:.*self_attn.*", "re:.*mlp.*"], …}}

After:

    "config_groups": {"group_0": {"targets": ["Linear"], …}},
    "ignore": ["re:(.*\\.)?(q_proj|k_proj|v_proj|qkv_proj)$"]

## How to fix

Keep `"targets": ["Linear"]`, and say by the ignore list which layers are dense. Where two groups differ,
name the layers as every engine does: fused and by shard, under any prefix.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dflash_audit.diagnosis.ignore_lists import DIALECTS, pattern, place_of, with_list
from dflash_audit.diagnosis.stored import State, faults, stored_in
from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.engines import LIVE, engine
from dflash_audit.finding import Finding
from dflash_audit.fold import fold
from dflash_audit.match import exact_or_regex
from dflash_audit.refusal import Refused
from dflash_audit.sources.checkpoint import Checkpoint
from dflash_audit.tree import Module, Modules

if TYPE_CHECKING:
    from dflash_audit.quantization.compressed_tensors.config import CompressedTensors


def find(run: EngineRun, checkpoint: Checkpoint, conditions: Conditions) -> Iterator[Finding]:
    """One finding a target that names layers which are quantized on disk, and none as the engine does."""
    for target, meant in dead_targets(run, checkpoint, conditions).items():
        yield _finding(run, target, meant)


def dead_targets(
    run: EngineRun, checkpoint: Checkpoint, conditions: Conditions
) -> Mapping[str, Mapping[str, Module]]:
    """Target under which the engine finds nothing -> the built modules that it means, by name on disk."""
    config = run.quant_config
    if run.engine in LIVE or config is None or not faults(run):
        return {}
    # Only here: most drafts are dense and do without the import.
    from dflash_audit.quantization.compressed_tensors.config import CompressedTensors

    if not isinstance(config, CompressedTensors):
        return {}
    tree = _tree(run, checkpoint, conditions)
    quantized = {
        part.name: tree[name]
        for name, parts in stored_in(tree, checkpoint.tensors).items()
        for part in parts
        if part.state is State.QUANTIZED and tree[name].prefix is not None
    }
    found = {}
    for target in config.groups:
        if isinstance(target, str):
            meant = {name: module for name, module in quantized.items() if _names(target, name, module)}
            if meant and not any(_hits(config, target, module) for module in tree.values()):
                found[target] = meant
    return found


def _tree(run: EngineRun, checkpoint: Checkpoint, conditions: Conditions) -> Modules:
    """The modules as this engine asks about them, seen where every layer is left dense."""
    place = place_of(checkpoint, run.quantization)
    if place is None or run.quantization is None:
        return Modules()
    unloaded = replace(checkpoint, looked_at=())
    bare = with_list(unloaded, place, DIALECTS[run.quantization].everything, all_linear=False)
    tree = engine(run.engine).replay(bare, conditions).tree
    return tree.modules if tree else Modules()


def _names(target: str, name: str, module: Module) -> bool:
    """Whether a target names a module as the checkpoint or another engine does."""
    return any(_matches(target, spelling) for spelling in (name, f"model.{name}", module.name))


def _hits(config: "CompressedTensors", target: str, module: Module) -> bool:
    """Whether this engine finds a module under a target: by name, by class, or all its shards by name."""
    if module.linear is None or module.prefix is None:
        return False
    by_class = target.lower() in module.module_class.lower()
    shards = config.names_looked_up(module.prefix)
    return (
        _matches(target, module.prefix)
        or _matches(target, module.module_class)
        or (by_class and not target.startswith("re:"))
        or all(_matches(target, shard) for shard in shards)
    )


def _matches(target: str, name: str) -> bool:
    try:
        return exact_or_regex(target, name)
    except Refused:
        return False  # no pattern; the build tells of it


def _finding(run: EngineRun, target: str, meant: Mapping[str, Module]) -> Finding:
    prefixes = [module.prefix for module in meant.values() if module.prefix is not None]
    asked = ", ".join(repr(name) for name in fold(dict.fromkeys(prefixes)))
    modules = "a module that is" if len(meant) == 1 else f"{len(meant)} modules that are"
    return Finding(
        rule="dead-target-entry",
        severity="warning",
        engine=run.engine,
        subject=target,
        message=(
            f"The target names {modules} quantized on disk, and nothing that {run.engine} asks about:"
            f" it asks about {asked}."
        ),
        hint=_hint(run.quant_config, prefixes),
        subjects=(target,),
    )


def _hint(config: Any, prefixes: list[str]) -> str:
    """One group may take every linear; of several, each has to name its own as engines do."""
    first, *others = config.groups.values()
    if all(group == first for group in others):
        return 'Set "targets": ["Linear"], and leave layers out by the ignore list.'
    return f"Keep the target for other engines, and add {json.dumps(spelled_target(prefixes))} beside it."


def spelled_target(prefixes: Iterable[str]) -> str:
    """One target for modules by the names under which an engine asks about them, under any prefix."""
    return pattern([*dict.fromkeys(prefix.rpartition(".")[2] for prefix in prefixes)])[0]
