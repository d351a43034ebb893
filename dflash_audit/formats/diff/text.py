"""A comparison for a person in a terminal: the verdicts, then what differs, folded over layers."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from rich.padding import Padding
from rich.text import Text

from dflash_audit.difference import Change, Difference, EngineDifference
from dflash_audit.fold import FOLDED, FOLDED_EXPERT, enumerated, pattern, title
from dflash_audit.formats.clean import clean
from dflash_audit.formats.console import Part, written
from dflash_audit.formats.outline import WORDS, described
from dflash_audit.formats.screen import Screen
from dflash_audit.formats.text import VERDICT_COLORS
from dflash_audit.report import Report
from dflash_audit.sources.checkpoint import Origin

ARROW: Final = "->"

MODULE_WORDS: Final = {"module_class": "class", "prefix": "asked as", "scheme": "scheme"}
"""Field of a module -> how it is told of."""


def render(difference: Difference, screen: Screen) -> str:
    """The whole comparison, of two that could be read, as lines that fit the screen."""
    return written(_parts(difference), screen)


def _parts(difference: Difference) -> Iterator[Part]:
    for letter, report in (("A", difference.a), ("B", difference.b)):
        yield Text.assemble((f"{letter}  ", "bold"), clean(_named(report.origin)))
        yield Padding(Text(clean(_what(report)), style="dim"), (0, 0, 0, 3))
    yield Text()
    yield from _compared(difference)
    yield Text(f"exit code {difference.exit_code}", style="dim")


def _compared(difference: Difference) -> Iterator[Part]:
    width = max((len(engine.name) for engine in difference.engines), default=0)
    for engine in difference.engines:
        yield _verdicts(engine, width)
    yield Text()
    if difference.same:
        yield Text("Nothing else differs: the same tensors, and the same plans.\n")
        return
    yield from _section("Stored tensors", _told(difference.tensors, _stored))
    for engines, alike in _alike(difference.engines):
        heading = enumerated(engines)
        yield from _refused(heading, alike)
        yield from _section(f"{heading}: modules", _modules(alike.modules))
        yield from _section(f"{heading}: parameters", _told(alike.parameters, _stored))
        yield from _section(f"{heading}: what nothing fills", _told(alike.missing, _gap))
        yield from _section(f"{heading}: where tensors go", _told(alike.tensors, _way))
        yield from _section(f"{heading}: taken in another size", _told(alike.resized, _took))
    alike_on = [engine.name for engine in difference.engines if engine.same]
    if alike_on:
        yield Text(f"The same on {' and '.join(alike_on)}.\n")


def _verdicts(engine: EngineDifference, width: int) -> Text:
    line = Text(f"  {engine.name:{width}}  ")
    line.append(WORDS[engine.a["verdict"]], VERDICT_COLORS[engine.a["verdict"]])
    if engine.a["verdict"] != engine.b["verdict"]:
        line.append(f" {ARROW} ").append(WORDS[engine.b["verdict"]], VERDICT_COLORS[engine.b["verdict"]])
    return line


def _alike(engines: Sequence[EngineDifference]) -> Iterator[tuple[list[str], EngineDifference]]:
    """The engines that differ, those together on which nothing but the verdict may be another."""
    left = [engine for engine in engines if not engine.same]
    while left:
        first = left[0]
        same = [engine for engine in left if _but_name(engine) == _but_name(first)]
        yield [engine.name for engine in same], first
        left = [engine for engine in left if engine not in same]


def _but_name(engine: EngineDifference) -> EngineDifference:
    sides = ({**side, "verdict": None} for side in (engine.a, engine.b))
    a, b = sides
    return replace(engine, name="", a=a, b=b)


def _refused(heading: str, engine: EngineDifference) -> Iterator[Part]:
    """What the engine as a whole does otherwise: the class, the method, where it stops."""
    lines = [
        f"{what}: {_value(engine.a[key])} {ARROW} {_value(engine.b[key])}"
        for key, what in (("model_class", "class"), ("quantization", "quantization"))
        if engine.a[key] != engine.b[key]
    ]
    if engine.a["refusal"] != engine.b["refusal"]:
        for letter, side in (("A", engine.a), ("B", engine.b)):
            if side["refusal"]:
                lines.append(f"{letter} is refused ({side['refusal']['stage']}): {side['refusal']['reason']}")
    if lines:
        yield Text(heading, style="bold")
        for line in lines:
            yield Padding(Text(clean(line)), (0, 0, 0, 2))
        yield Text()


def _section(heading: str, told: dict[str, list[str]]) -> Iterator[Part]:
    if not told:
        return
    yield Text(clean(heading), style="bold")
    for what, names in told.items():
        color = {"only in A": "red", "only in B": "green"}.get(what[:9], "")
        yield Padding(Text(clean(what), style=color), (0, 0, 0, 2))
        for name in names:
            yield Padding(Text(clean(name), style="cyan"), (0, 0, 0, 4))
    yield Text()


Said = Iterable[tuple[str, str]]
"""What is said of a name, and the name."""


def _told(changes: Iterable[Change], say: Callable[[Change], str]) -> dict[str, list[str]]:
    """What is said -> the names that it is said of, folded over layers and over the module's name."""
    return _folded(((say(change), change.name) for change in changes), at=-2)


def _modules(changes: Iterable[Change]) -> dict[str, list[str]]:
    """The same of modules, where each field is told of alone."""

    def said() -> Iterator[tuple[str, str]]:
        for change in changes:
            if change.a is None or change.b is None:
                yield f"only in {'B' if change.a is None else 'A'}", change.name
            else:
                for field in change.differing:
                    a, b = (_of_module(field, side[field], change.name) for side in (change.a, change.b))
                    yield f"{MODULE_WORDS[field]} {a} {ARROW} {b}", change.name

    return _folded(said(), at=-1)


def _of_module(field: str, value: Any, name: str) -> str:
    if field != "prefix":
        return _value(value)
    if value == name:
        return "its name"
    return pattern(value).replace(FOLDED, "layers.*").replace(FOLDED_EXPERT, "experts.*")


def _folded(said: Said, at: int) -> dict[str, list[str]]:
    """Names of which the same is said and that differ in their layer and the part `at` that place alone."""
    frames: dict[tuple[str, str], list[str]] = {}
    for what, name in said:
        parts = pattern(name).split(".")
        if len(parts) > -at:
            parts[at] = "*"
        frames.setdefault((what, ".".join(parts)), []).append(name)
    told: dict[str, list[str]] = {}
    for (what, _), names in frames.items():
        told.setdefault(what, []).append(title(names))
    return told


def _stored(change: Change) -> str:
    """Of a tensor or a parameter that one side alone has, the dtype is enough."""
    alone = change.a or change.b
    if change.a is None or change.b is None:
        assert alone is not None
        return f"only in {'B' if change.a is None else 'A'}, {alone['dtype']}"
    told = (f"{key} {_value(change.a[key])} {ARROW} {_value(change.b[key])}" for key in change.differing)
    return ", ".join(told)


def _gap(change: Change) -> str:
    def side(fields: Any, letter: str) -> str:
        if fields is None:
            return ""
        shards = fields["missing"]
        return f"{letter}: {'all of it' if shards == ['all'] else 'shards ' + ', '.join(shards)}"

    return "; ".join(filter(None, (side(change.a, "in A"), side(change.b, "in B"))))


def _took(change: Change) -> str:
    told = ((change.a, "in A"), (change.b, "in B"))
    return "; ".join(
        f"{where}: {side['took']:,} numbers for {side['holds']:,}" for side, where in told if side
    )


def _way(change: Change) -> str:
    if change.a is None or change.b is None:
        alone = change.a or change.b
        assert alone is not None
        return f"only in {'B' if change.a is None else 'A'}, {alone['outcome']}"
    if change.a["outcome"] != change.b["outcome"]:
        return f"{change.a['outcome']} {ARROW} {change.b['outcome']}"
    if "targets" in change.differing:
        return f"to other parameters: {_value(change.a['targets'])} {ARROW} {_value(change.b['targets'])}"
    return f"cast {_cast(change.a['cast'])} {ARROW} {_cast(change.b['cast'])}"


def _cast(cast: Any) -> str:
    return "none" if cast is None else f"to {cast['to']}{' (lossy)' if cast['lossy'] else ''}"


def _value(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(str, value)) + "]"
    return "none" if value is None else str(value)


def _named(origin: Origin) -> str:
    return origin.id if origin.revision is None else f"{origin.id}@{origin.revision}"


def _what(report: Report) -> str:
    assert report.checkpoint is not None
    commit = f", commit {report.origin.commit}" if report.origin.commit else ""
    return described(report.checkpoint, report.runs) + commit
