"""The built tree as text: each module with its parameters and what happens to them."""

from collections.abc import Iterator, Mapping

from dflash_audit.drops import dropped, ignored
from dflash_audit.engine_run import EngineRun
from dflash_audit.formats.clean import clean
from dflash_audit.loadplan import Shard
from dflash_audit.tree import Module, Parameter


def render(run: EngineRun) -> str:
    """The tree of one engine, or the reason why there is none."""
    if run.skipped is not None:
        return f"{run.engine} is not replayed: {clean(run.skipped)}"
    lines = [f"{run.model_class or 'no class'} as {run.engine} builds it"]
    if run.tree is not None:
        missing = run.plan.missing() if run.plan else {}
        sources = _sources(run)
        for module in run.tree.modules.values():
            if module.parameters:
                lines += _module(module, sources, missing)
    lines += [f"DROPPED  {clean(t.name)}  {t.dtype} {list(t.shape)}" for t in dropped(run)]
    lines += [f"ignored  {clean(t.name)}  {reason}" for t, reason in ignored(run)]
    if run.refusal is not None:
        lines.append(f"refused at {run.refusal.stage}: {clean(run.refusal.reason)}")
    return "\n".join(lines)


def _sources(run: EngineRun) -> Mapping[str, list[str]]:
    """Parameter -> the tensors that fill it, each with its shard and its cast."""
    found: dict[str, list[str]] = {}
    for tensor, fills in run.plan.fills.items() if run.plan else ():
        for fill in fills:
            shard = "" if fill.shard is None else f"[{fill.shard}] "
            cast = f" {fill.dtype}->{fill.cast_to}" if fill.cast_to else ""
            found.setdefault(fill.slot.name, []).append(f"{shard}{clean(tensor.name)}{cast}")
    return found


def _module(
    module: Module, sources: Mapping[str, list[str]], missing: Mapping[str, tuple[Shard, ...]]
) -> Iterator[str]:
    asked = f" asked as {module.prefix!r}" if module.prefix is not None else ""
    scheme = f" {module.scheme.name}" if module.scheme else ""
    yield f"{module.name or '(root)'}  {module.module_class}{scheme}{asked}"
    for parameter in module.parameters:
        name = f"{module.name}.{parameter.name}" if module.name else parameter.name
        fate = _fate(parameter, sources.get(name), missing.get(name))
        yield f"    {parameter.name}  {parameter.dtype} {list(parameter.shape)}  {fate}"


def _fate(parameter: Parameter, sources: list[str] | None, missing: tuple[Shard, ...] | None) -> str:
    said = []
    if sources:
        said.append("<- " + ", ".join(sources))
    if missing:
        shards = "" if missing == ("all",) else " " + ", ".join(f"[{shard}]" for shard in missing)
        said.append(f"UNFILLED{shards}")
    if not sources and not missing:
        said.append("keeps its own value" if parameter.defaulted else "not reached")
    return "  ".join(said)
