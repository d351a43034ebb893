"""The built tree as text: each module with its parameters and what happens to them."""

from collections.abc import Iterator, Mapping

from dflash_audit.drops import dropped, ignored
from dflash_audit.engine_run import EngineRun
from dflash_audit.formats.clean import clean
from dflash_audit.formats.console import written
from dflash_audit.formats.screen import Screen
from dflash_audit.loadplan import Shard
from dflash_audit.tree import Module, Parameter


def render(run: EngineRun, source: str, screen: Screen) -> str:
    """The tree of one engine, or the reason why there is none; `source` names the checkpoint."""
    return written([(clean(source), "bold"), *lines(run)], screen)


def lines(run: EngineRun) -> Iterator[tuple[str, str]]:
    """Every line, with its style."""
    if run.skipped is not None:
        yield f"{run.engine} is not replayed: {clean(run.skipped)}", ""
        return
    yield f"What {run.engine} builds: {run.model_class or 'nothing'}", "bold"
    if run.tree is not None:
        missing = run.plan.missing() if run.plan else {}
        sources = _sources(run)
        for module in run.tree.modules.values():
            if module.parameters:
                yield from _module(module, sources, missing)
    for tensor in dropped(run):
        yield f"DROPPED  {clean(tensor.name)}  {tensor.dtype} {list(tensor.shape)}", "bold red"
    for tensor, reason in ignored(run):
        yield f"ignored  {clean(tensor.name)}  {reason}", "dim"
    if run.refusal is not None:
        yield f"refused at {run.refusal.stage}: {clean(run.refusal.reason)}", "bold red"


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
) -> Iterator[tuple[str, str]]:
    asked = f" asked as {module.prefix!r}" if module.prefix is not None else ""
    scheme = f" {module.scheme.name}" if module.scheme else ""
    yield f"{module.name or '(root)'}  {module.module_class}{scheme}{asked}", "cyan"
    for parameter in module.parameters:
        name = f"{module.name}.{parameter.name}" if module.name else parameter.name
        fate = _fate(parameter, sources.get(name), missing.get(name))
        yield (
            f"    {parameter.name}  {parameter.dtype} {list(parameter.shape)}  {fate}",
            "red" if name in missing else "",
        )


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
