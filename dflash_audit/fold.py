"""Names that belong together, folded into one: layers and experts as ranges, siblings in braces."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

LAYER: Final = re.compile(r"(?<![^.])layers\.(0|[1-9][0-9]{0,8})(?=\.)")
EXPERT: Final = re.compile(r"(?<![^.])experts\.(0|[1-9][0-9]{0,8})(?=\.)")
MOST: Final = 8
"""So many names stand in one title; of more, the first few and a count."""

FOLDED: Final = "layers.{}"
FOLDED_EXPERT: Final = "experts.{}"


def pattern(name: str) -> str:
    """`name` with its layer and its expert left open: names with one pattern differ by those only."""
    return EXPERT.sub(FOLDED_EXPERT, LAYER.sub(FOLDED, name, count=1), count=1)


def kind(name: str) -> str:
    """`pattern` of a module; of what belongs to an expert that of all experts beside it."""
    before, expert, _ = pattern(name).partition(f".{FOLDED_EXPERT}.")
    return before + expert


def fold(names: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """One name for all that differ only by layer and expert -> those names, in their order.

    `layers.0.mlp.up_proj` and `layers.1.mlp.up_proj` fold into
    `layers.0-1.mlp.up_proj`; a name without a twin stands for itself.
    """
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(pattern(name), []).append(name)
    return {title(members): tuple(members) for members in groups.values()}


def title(names: Iterable[str]) -> str:
    """One name for many: layers and experts as ranges, and one part that differs in braces.

    Names that differ in more than that are written one after the other.
    """
    by_layers: dict[str, list[str]] = {}
    for shape, layers in _layers_of_patterns(_experts_in_ranges(names)).items():
        by_layers.setdefault(ranges(sorted(layers)), []).append(shape)
    return _few(
        [
            text.replace(FOLDED, f"layers.{layers}", 1)
            for layers, shapes in by_layers.items()
            for text in _braces(shapes)
        ],
        ", ",
    )


def _few(words: list[str], between: str) -> str:
    if len(words) <= MOST:
        return between.join(words)
    return between.join([*words[:3], f"... {len(words) - 3:,} more"])


def _experts_in_ranges(names: Iterable[str]) -> list[str]:
    """The names, those that differ by their expert alone as one."""
    experts: dict[tuple[str, ...], set[int]] = {}
    for name in names:
        found = EXPERT.search(name)
        if found is None:
            experts.setdefault((name,), set())
        else:
            experts.setdefault((name[: found.start(1)], name[found.end(1) :]), set()).add(int(found[1]))
    return [ranges(sorted(numbers)).join(around) for around, numbers in experts.items()]


def _layers_of_patterns(names: Iterable[str]) -> Mapping[str, set[int]]:
    """Pattern -> the layers of the names that have it."""
    found: dict[str, set[int]] = {}
    for name in names:
        layer = LAYER.search(name)
        if layer is None:
            found.setdefault(name, set())
        else:
            shape = f"{name[: layer.start()]}{FOLDED}{name[layer.end() :]}"
            found.setdefault(shape, set()).add(int(layer[1]))
    return found


def _braces(shapes: list[str]) -> list[str]:
    """Names in which one dotted part differs, as one name with that part in braces."""
    parts = [shape.split(".") for shape in shapes]
    if len({len(part) for part in parts}) != 1:
        return shapes
    differing = [i for i, column in enumerate(zip(*parts, strict=True)) if len(set(column)) > 1]
    if len(differing) != 1:
        return shapes
    (at,) = differing
    braced = "{" + _few([*dict.fromkeys(part[at] for part in parts)], ",") + "}"
    return [".".join([*parts[0][:at], braced, *parts[0][at + 1 :]])]


def enumerated(words: Iterable[str]) -> str:
    """Words as a sentence lists them: `a, b and c`; empty for none."""
    *most, last = [*words] or [""]
    return f"{', '.join(most)} and {last}" if most else last


def ranges(numbers: list[int]) -> str:
    """Sorted numbers as a person writes them: `0-4,6`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
