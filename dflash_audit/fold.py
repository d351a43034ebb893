"""Names that differ only by their layer, folded into one."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

LAYER: Final = re.compile(r"(?<![^.])layers\.(\d+)(?=\.)")


def fold(names: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """One name for all that differ only by layer -> those names, in their order.

    `layers.0.mlp.up_proj` and `layers.1.mlp.up_proj` fold into
    `layers.0-1.mlp.up_proj`; a name without a twin stands for itself.
    """
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(LAYER.sub("layers.{}", name, count=1), []).append(name)
    return {_title(pattern, members): tuple(members) for pattern, members in groups.items()}


def _title(pattern: str, members: list[str]) -> str:
    if len(members) == 1:
        return members[0]
    layers = sorted({int(match[1]) for name in members if (match := LAYER.search(name))})
    # Two files of one checkpoint may hold the same name twice.
    return pattern.replace("layers.{}", f"layers.{ranges(layers)}", 1) if layers else members[0]


def ranges(numbers: list[int]) -> str:
    """Sorted numbers as a person writes them: `0-4,6`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
