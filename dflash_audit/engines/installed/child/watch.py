"""Notes what reaches the parameters of a draft while an engine loads it."""

import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from dflash_audit.engines.installed.child.built import torch_name

Loader = Callable[..., Any]


@dataclass
class Watch:
    """`reads` are (tensor, dtype, shape) in order, `fills` (place in `reads`, parameter, shard, dtype).

    `default` is the package's loader for parameters that have none of their own. `refused`
    are the places in `reads` of what was refused before the load began anew.
    """

    default: Loader
    reads: list[tuple[str, str, list[int]]] = field(default_factory=list)
    fills: list[tuple[int, str, Any, str]] = field(default_factory=list)
    broken: bool = False
    ended: bool = False
    listed: bool = True  # every tensor was read before the first was loaded
    refused: set[int] = field(default_factory=set)
    _loading: int | None = None
    _passing: int | None = None
    # By id, with a reference that dies with the tensor: the next one may get its id.
    _places: dict[int, tuple[weakref.ref[Any], int]] = field(default_factory=dict)

    @property
    def in_hand(self) -> str | None:
        """The tensor in a weight loader, else on its way to one, else the one that was read last.

        None once there are no more.
        """
        place = self._place_in_hand
        return None if place is None else self.reads[place][0]

    @property
    def _place_in_hand(self) -> int | None:
        place = self._passing if self._loading is None else self._loading
        if place is not None:
            return place
        return len(self.reads) - 1 if self.reads and not self.ended else None

    def begin_anew(self) -> None:
        """Forget all but that the tensor in hand was refused, which no load is given again."""
        place = self._place_in_hand
        assert place is not None
        self.refused.add(place)
        self.reads.clear()
        self.fills.clear()
        self._places.clear()
        self.ended, self.listed = False, True

    def read(self, weights: Iterator[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
        """The same weights, each noted; may be taken up again after it was left."""
        self._loading = self._passing = None
        while True:
            try:
                name, tensor = next(weights)
            except StopIteration:
                self.ended = True
                return
            except Exception:
                self.broken = True
                raise
            self._places[id(tensor)] = (weakref.ref(tensor), len(self.reads))
            self.reads.append((name, torch_name(tensor.dtype), list(tensor.shape)))
            if len(self.reads) - 1 not in self.refused:
                yield name, tensor

    def passing(self, weights: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
        """The same weights where a class hands them on, one after another, that it has read before."""
        for name, tensor in weights:
            self._passing = self._place_of(tensor)
            yield name, tensor
        self._passing = None

    def attach(self, model: Any) -> None:
        """Wrap the weight loader of every parameter, and give the default one to those that have none."""
        for name, parameter in model.named_parameters():
            load = self.loader(name, getattr(parameter, "weight_loader", self.default))
            if hasattr(parameter, "_weight_loader"):  # a read-only property gives it
                parameter._weight_loader = load
            else:
                parameter.weight_loader = load

    def loader(self, name: str, load: Loader) -> Loader:
        """The same weight loader, which notes that a tensor went into the parameter of that name."""

        def watched(parameter: Any, tensor: Any, *args: Any, **kwargs: Any) -> Any:
            if self._loading is not None:  # one that calls another tells of one fill
                return load(parameter, tensor, *args, **kwargs)
            place = self._place_of(tensor)
            shard = args[0] if args else kwargs.get("loaded_shard_id", kwargs.get("shard_id"))
            self.listed = self.listed and self.ended
            self._loading = place
            done = load(parameter, tensor, *args, **kwargs)
            self._loading = None
            if place is not None:
                self.fills.append((place, name, shard, torch_name(tensor.dtype)))
            return done

        return watched

    def step(self, tensor: str, parameter: str, does: Callable[..., None]) -> Callable[..., None]:
        """A step of a class that puts a tensor into a parameter in a way of its own; it is noted then."""

        def watched(*args: Any) -> None:
            place = max(at for at, (name, _, _) in enumerate(self.reads) if name == tensor)
            self._loading = place
            does(*args)
            self._loading = None
            self.fills.append((place, parameter, None, self.reads[place][1]))

        return watched

    def _place_of(self, tensor: Any) -> int | None:
        """Where in `reads` a tensor stands, or the one that it is a part of.

        One that was made of another is of the last that was read, while each is loaded as it is read;
        else nothing tells of which, nor whether it is of a weight file at all.
        """
        reference, place = self._places.get(id(tensor), (None, 0))
        if reference is not None and reference() is tensor:
            return place
        address = tensor.data_ptr()
        for held, place in self._places.values():
            whole = held()
            if whole is not None and whole.data_ptr() <= address < whole.data_ptr() + whole.nbytes:
                return place
        return None if self.ended else len(self.reads) - 1
