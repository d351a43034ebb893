"""An entry of the ignore list names layers on disk, but none that the engine asks about.

A quantizer matches the list against the module names of the model, an engine
against the names under which it builds: fused, and in some versions bare. Where
the two differ the entry has no effect, and a layer that was left dense is built quantized.
"""

from collections.abc import Iterator, Mapping

from dflash_audit.drops import owner
from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding
from dflash_audit.tree import Module, Tree


def find(run: EngineRun) -> Iterator[Finding]:
    """One finding an entry."""
    if run.quant_config is None or run.tree is None or run.plan is None:
        return
    on_disk = _on_disk(run, run.tree)
    asked = {name for module in run.tree.modules.values() for name in _names_asked(run, module)}
    for entry in run.quant_config.left_dense:
        meant = [module for name, module in on_disk.items() if run.quant_config.leaves_dense(entry, name)]
        if meant and not any(run.quant_config.leaves_dense(entry, name) for name in asked):
            yield _finding(run, entry, meant)


def _on_disk(run: EngineRun, tree: Tree) -> Mapping[str, Module]:
    """Module name on disk -> the linear of the draft that it is for, where that one is asked about."""
    assert run.plan is not None
    found = {}
    for tensor in run.plan.tensors:
        module = owner(tree.modules, tensor.name)
        if module is not None and module.linear is not None and module.prefix is not None:
            found[tensor.name.removeprefix("model.").rpartition(".")[0]] = module
    return found


def _names_asked(run: EngineRun, module: Module) -> tuple[str, ...]:
    """The names under which the config is asked about a linear: its own, or its shards'."""
    if module.linear is None or module.prefix is None:
        return ()
    last = module.prefix.rpartition(".")[2]
    shards = run.fused.get(last, ())
    return (module.prefix, *(module.prefix.replace(last, shard) for shard in shards))


def _finding(run: EngineRun, entry: str, meant: list[Module]) -> Finding:

    asked = ", ".join(dict.fromkeys(repr(module.prefix) for module in meant))
    return Finding(
        rule="dead-ignore-entry",
        severity="warning",
        engine=run.engine,
        subject=entry,
        message=(
            f"The entry matches {len(meant)} module names on disk, but nothing that {run.engine} asks about:"
            f" it asks about these layers as {asked}, so they are built quantized."
        ),
        hint=f"Add an entry that matches {asked}, re:.*{meant[0].name.rpartition('.')[2]}$ for one.",
        subjects=(entry,),
    )
