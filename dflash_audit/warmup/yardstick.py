"""The draft that another is held against: the same engine's replay of it must leave nothing open."""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import fields, is_dataclass
from typing import Any, Final

from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.engines import engine
from dflash_audit.errors import Unreadable
from dflash_audit.fold import title
from dflash_audit.forward import Forward
from dflash_audit.refusal import NotModelled, Refused
from dflash_audit.sources.checkpoint import Checkpoint
from dflash_audit.sources.progress import waiting
from dflash_audit.sources.source import find_repo, read_source

NO_YARDSTICK: Final = "no-yardstick"


def read_original(source: str) -> Checkpoint:
    """Read the draft that others are held against: a path, or a repo of the Hub.

    Raises `Unreadable`, as reading the audited source does.
    """
    with waiting(f"Reading {source} ...") if find_repo(source) is not None else nullcontext():
        return read_source(source, None)


def yardstick(original: Checkpoint, name: str, forward: Forward, conditions: Conditions) -> EngineRun:
    """The original as the engine of that name loads it, for a draft that computes `forward`.

    Raises `Unreadable` (no-yardstick) where the engine stops or leaves something open,
    or where the original computes something else.
    """
    run = engine(name).replay(original, conditions)
    reason = next(_unfit(run, forward), None)
    if reason is not None:
        raise Unreadable(NO_YARDSTICK, original.id, f"nothing can be held against it on {name}: {reason}")
    return run


def _unfit(run: EngineRun, forward: Forward) -> Iterator[str]:
    """Why nothing can be held against this replay."""
    if run.skipped is not None:
        yield run.skipped
    elif run.refusal is not None:
        yield f"the engine stops ({run.refusal.stage}: {run.refusal.reason})"
    else:
        yield from _gaps(run)
        yield from _otherwise(run, forward)


def _gaps(run: EngineRun) -> Iterator[str]:
    assert run.plan is not None
    if missing := run.plan.missing():
        yield f"nothing fills {title(missing)}"
    lossy = {fill.slot.name: None for fills in run.plan.fills.values() for fill in fills if fill.lossy}
    if lossy:
        yield f"quantized numbers are taken for dense ones, or the reverse, in {title(lossy)}"
    if resized := run.plan.resized():
        yield f"a tensor of another size goes into {title(one.slot.name for one in resized)}"
    if run.quantization is not None:
        yield f"it is quantized itself ({run.quantization})"


def _otherwise(run: EngineRun, forward: Forward) -> Iterator[str]:
    try:
        own = engine(run.engine).forward(run)
    except NotModelled as unknown:
        yield unknown.reason
    except Refused as refused:
        yield f"the engine stops ({refused.reason})"
    else:
        if differing := [*_differences(own, forward)]:
            yield f"it computes something else, by its {', '.join(differing)}"


def _differences(one: Any, other: Any, at: str = "") -> Iterator[str]:
    """Dotted names of the fields in which two values differ."""
    if type(one) is not type(other) or not is_dataclass(one):
        if one != other:
            yield at or type(one).__name__
        return
    for field in fields(one):
        name = f"{at}.{field.name}" if at else field.name
        yield from _differences(getattr(one, field.name), getattr(other, field.name), name)
