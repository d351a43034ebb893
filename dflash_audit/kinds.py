"""Tensors by kind: those whose names differ by their layer alone, so many as there may be.

What is asked of every name of a checkpoint is asked of each kind instead, of which even a large one has few.
"""

import re
from collections.abc import Iterable, Mapping
from itertools import chain

from dflash_audit.fold import LAYER
from dflash_audit.once import once
from dflash_audit.sources.checkpoint import Tensor
from dflash_audit.sources.tensors import Tensors, as_tensors

Kind = tuple[str, str] | str
"""What stands before the layer's number and behind it; the whole name where it has none."""


@once
def kind_of_each(tensors: Tensors) -> list[Kind]:
    """The kind of each tensor, in their order."""
    same: dict[Kind, Kind] = {}
    return [same.setdefault(kind, kind) for kind in (_kind(tensor.name) for tensor in tensors)]


def _kind(name: str) -> Kind:
    layer = LAYER.search(name)
    return name if layer is None else (name[: layer.start(1)], name[layer.end(1) :])


@once
def _places_of_kinds(tensors: Tensors) -> Mapping[Kind, list[int]]:
    """Kind -> where its tensors stand."""
    places: dict[Kind, list[int]] = {}
    for place, kind in enumerate(kind_of_each(tensors)):
        places.setdefault(kind, []).append(place)
    return places


def named(tensors: Iterable[Tensor], name: re.Pattern[str]) -> list[Tensor]:
    """The tensors whose whole name, but for a leading `model.`, matches a pattern, in their order.

    The pattern must take any layer for `layers.N.`, if it takes one.
    """
    tensors = as_tensors(tensors)
    known = _named(tensors)
    if name not in known:
        found = (
            places
            for places in _places_of_kinds(tensors).values()
            if name.fullmatch(tensors[places[0]].name.removeprefix("model."))
        )
        known[name] = [tensors[place] for place in sorted(chain.from_iterable(found))]
    return known[name]


@once
def _named(tensors: Tensors) -> dict[re.Pattern[str], list[Tensor]]:
    """What was found so far: every engine of a family asks for the same names."""
    del tensors
    return {}
