"""Notes what reaches the parameters of a draft while SGLang loads it."""

import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from sglang.srt.model_loader.weight_utils import default_weight_loader
from sglang.srt.models import dflash, dspark


@dataclass
class Watch:
    """`reads` are (tensor, dtype, shape) in order, `fills` (place in `reads`, parameter, shard, dtype)."""

    reads: list[tuple[str, str, list[int]]] = field(default_factory=list)
    fills: list[tuple[int, str, Any, str]] = field(default_factory=list)
    broken: bool = False
    ended: bool = False
    listed: bool = True  # every tensor was read before the first was loaded
    _loading: int | None = None
    # By id, with a reference that dies with the tensor: the next one may get its id.
    _places: dict[int, tuple[weakref.ref[Any], int]] = field(default_factory=dict)

    @property
    def in_hand(self) -> str | None:
        """The tensor in a weight loader, or the one that was read last; None once there are no more."""
        if self._loading is not None:
            return self.reads[self._loading][0]
        return self.reads[-1][0] if self.reads and not self.ended else None

    def read(self, weights: Iterator[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
        """The same weights, each noted; may be taken up again after it was left."""
        self._loading = None
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
            yield name, tensor

    def attach(self, model: Any) -> None:
        """Wrap the weight loader of every parameter."""
        names = {}
        for name, parameter in model.named_parameters():
            if not hasattr(parameter, "weight_loader"):
                names[id(parameter)] = name
            elif hasattr(parameter, "_weight_loader"):  # a read-only property gives it
                parameter._weight_loader = self._loader(name, parameter.weight_loader)
            else:
                parameter.weight_loader = self._loader(name, parameter.weight_loader)

        def default(parameter: Any, tensor: Any) -> Any:
            return self._loader(names[id(parameter)], default_weight_loader)(parameter, tensor)

        dflash.default_weight_loader = dspark.default_weight_loader = default

    def _place_of(self, tensor: Any) -> int:
        """Where in `reads` a tensor stands; one that was made of another is of the last that was read."""
        reference, place = self._places.get(id(tensor), (None, 0))
        return place if reference is not None and reference() is tensor else len(self.reads) - 1

    def _loader(self, name: str, load: Callable[..., Any]) -> Callable[..., Any]:
        def watched(parameter: Any, tensor: Any, *args: Any, **kwargs: Any) -> Any:
            place = self._place_of(tensor)
            shard = args[0] if args else kwargs.get("loaded_shard_id")
            self.listed = self.listed and self.ended
            self._loading = place
            done = load(parameter, tensor, *args, **kwargs)
            self._loading = None
            self.fills.append((place, name, shard, torch_name(tensor.dtype)))
            return done

        return watched


def torch_name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")
