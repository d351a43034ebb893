"""One draft through its stages, and the record of it: what was built, loaded, dropped and refused."""

import os
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, Protocol

from dflash_audit.engines.installed.child.built import Record, attributes, give_back_memory
from dflash_audit.engines.installed.child.watch import Watch

LONGEST_ANEW: Final = 60.0
"""Seconds after which no load is begun anew."""


class OtherFamily(Exception):
    """The engine has this class, and it is no draft of DFlash's family, or none that can be built alone."""


class Draft(Protocol):
    """One draft as a package takes it, stage by stage; each method raises what the package raises.

    `stage` is the one that is on; what is not known yet is None.
    """

    stage: str
    model_class: Any
    model: Any

    @property
    def loads_anew(self) -> bool:
        """Whether the load begins anew after a refusal, for a class that has all tensors in hand by then.

        Else it goes on where it stopped.
        """
        ...

    @property
    def quantization(self) -> str | None: ...

    @property
    def config(self) -> Any:
        """The config object that the draft's class is given."""
        ...

    @property
    def act_order(self) -> bool:
        """Whether what quantizes the draft orders inputs by activations."""
        ...

    def settle(self) -> None:
        """The config, the class and what quantizes it; raises `OtherFamily` for another's class."""
        ...

    def build(self) -> None: ...

    def modules(self) -> Iterable[Record]: ...

    def weights(self) -> Iterator[tuple[str, Any]]:
        """Every tensor of the weight files that the package picks, in its order."""
        ...


def attempt(draft: Draft, watch: Watch) -> Record:
    """What the package does with the draft.

    `stage` is where it stops, `error` what it says and `at_tensor` the tensor in its
    hands. With `complete` every tensor had its turn: a refused one is among `refusals`
    and the load went on behind it, or anew without it.
    """
    load = _Load([], complete=True)
    skipped = None
    modules = None
    try:
        draft.settle()
        draft.build()
        modules = list(draft.modules())
        watch.attach(draft.model)
        load = _load(draft, watch)
    except OtherFamily as other:
        skipped = str(other)
    except Exception as error:  # whatever it is, it is what the engine says
        _of_the_draft(error)
        load = _Load([(_said(error), None)], complete=False)
    if draft.model is not None:
        give_back_memory(draft.model)
    first, tensor = load.refusals[0] if load.refusals else (None, None)
    return {
        "class": draft.model_class.__name__ if draft.model_class else None,
        "quantization": draft.quantization,
        "skipped": skipped,
        "stage": draft.stage if load.refusals else None,
        "error": first,
        "at_tensor": tensor,
        "config": None if draft.config is None else attributes(draft.config),
        "act_order": draft.act_order,
        "packed_modules_mapping": _mapping(draft.model_class),
        "flags": [],
        "modules": modules,
        "reads": watch.reads,
        "fills": watch.fills,
        "refusals": load.refusals if draft.stage == "load" else [],
        "complete": load.complete,
    }


def _mapping(model_class: Any) -> Mapping[str, Any]:
    found: Mapping[str, Any] = getattr(model_class, "packed_modules_mapping", {})
    return found


class _Load(NamedTuple):
    """What was refused, with the tensor, and whether every tensor had its turn."""

    refusals: list[tuple[str, str | None]]
    complete: bool


def _load(draft: Draft, watch: Watch) -> _Load:
    """Load, and after a tensor that is refused go on with the next, or anew without it.

    A check at the end of the load counts only where nothing was refused before it:
    else it would tell of the consequences.
    """
    draft.stage = "load"
    refusals: list[tuple[str, str | None]] = []
    weights = draft.weights()
    until = time.monotonic() + LONGEST_ANEW
    while not watch.ended:
        try:
            draft.model.load_weights(watch.read(weights))
        except Exception as error:
            _of_the_draft(error)
            tensor = watch.in_hand
            if not (refusals and watch.ended and tensor is None):
                refusals.append((_said(error), tensor))
            if watch.broken or (tensor is None and not watch.ended):
                return _Load(refusals, complete=False)
            if draft.loads_anew and tensor is not None:
                if time.monotonic() > until:
                    return _Load(refusals, complete=False)
                watch.begin_anew()
                weights = draft.weights()
    told_of_all = [tensor for _, tensor in refusals] != [None]
    return _Load(refusals, not refusals or (told_of_all if draft.loads_anew else not watch.listed))


def _of_the_draft(error: Exception) -> None:
    """Raises MemoryError where it is this machine that lacks memory, in Python's words or in torch's.

    Source: torch 2.14 `c10/core/impl/alloc_cpu.cpp`.
    """
    if isinstance(error, MemoryError) or "DefaultCPUAllocator: can't allocate memory" in str(error):
        raise MemoryError("this machine has too little memory for the draft") from None


def _said(error: Exception) -> str:
    """What the engine says, in a line; of a bare assertion, where it stands."""
    text = " ".join(str(error).split())[:600]
    if text:
        return f"{type(error).__name__}: {text}"
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {os.path.basename(last.filename)}:{last.lineno}: {last.line}"
