"""What a warm-up saw, as the child tells it to the parent. Imports no torch."""

import math
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["pass", "fail", "skipped"]
Kind = Literal["assert", "crash", "timeout", "error", "killed", "out-of-memory", "no-device"]
Numbers = Literal["int", "float"]


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of the forward pass and the numbers that it gave.

    `nonfinite` is the share of NaN and infinities among them, `largest` the
    greatest magnitude of the finite ones, None where there is none.
    """

    name: str
    seconds: float
    nonfinite: float = 0.0
    largest: float | None = None

    @property
    def finite(self) -> bool:
        return self.nonfinite == 0.0


@dataclass(frozen=True, slots=True)
class Source:
    """A module out of which non-finite numbers came although only finite ones went in.

    `unfilled` are the parameters, or `parameter[shard]`, that it reads and nothing
    fills; `tensors` the tensors on disk that are not finite themselves (a parameter where
    only its cast is not). With neither, its arithmetic left the dtype's range.
    """

    module: str
    stage: str
    unfilled: tuple[str, ...] = ()
    tensors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Death:
    """How a child ended that did not finish.

    `kind` is one kebab-case word, `stage` the last that it began, `detail` what
    the system or CUDA says of it, in a line. With `by_draft` the draft's own
    forward did it; else the machine could not run it, and nothing is known of the draft.
    """

    kind: Kind
    stage: str
    detail: str
    by_draft: bool


@dataclass(frozen=True, slots=True)
class Drift:
    """How far one matrix of a linear is from the same of the other draft.

    `matrix` is the module on disk, of a fused one a shard's. A kernel multiplies
    `numbers` of so many `bits`, of which `width` in a row share a scale. `error` is
    the norm of the difference over that of the other. `gain` is the worst row's
    ratio of the two, `group` that of the worst group (both 1.0 where the scales
    are right), `shift` the worst group's mean difference over its weights' root mean
    square (0.0 where the zero points are right).
    """

    matrix: str
    numbers: Numbers
    bits: int
    width: int
    error: float
    gain: float
    group: float
    shift: float

    @property
    def decibels(self) -> float | None:
        """Signal to noise; None without any noise."""
        return None if self.error == 0 else -20 * math.log10(self.error)


@dataclass(frozen=True, slots=True)
class Cosine:
    """How near the vectors of a stage's hidden states are to the other draft's: the `mean` and the `least`.

    `rounding` is the mean that the other draft has with itself under random errors of
    the size that rounding explains: what is to be expected of its weights.
    """

    stage: str
    mean: float
    least: float
    rounding: float


def layer_of(name: str) -> str:
    """`layers.0` of `layers.0.mlp.down_proj`; a module outside of the layers is its own."""
    parts = name.split(".")
    return ".".join(parts[:2]) if parts[0] == "layers" else name


@dataclass(frozen=True, slots=True)
class Fidelity:
    """A draft held against another on the same inputs.

    `first` is the share of positions whose best candidate agrees, `common` that of
    candidates that both have, `common_rounding` what is to be expected of that, as in
    `Cosine`; all None for a draft without candidates. `rescaled` are the layers
    (`layers.0`) in which a norm before linears is another, as where a recipe moves scales
    from a linear to the norm before it: their matrices then differ by design.
    """

    against: str
    drifts: tuple[Drift, ...]
    cosines: tuple[Cosine, ...]
    first: float | None
    common: float | None
    common_rounding: float | None
    rescaled: tuple[str, ...]

    def judges(self, drift: Drift) -> bool:
        """Whether a matrix that is far from the other's is so by a fault."""
        return layer_of(drift.matrix) not in self.rescaled


@dataclass(frozen=True, slots=True)
class WarmUp:
    """The warm-up of one engine's draft.

    `reached` names the output stages with non-finite numbers (norm, candidates,
    selector …), `out_of_range` the ids that index past a table, as (table, id, rows).
    `skipped` says why there was nothing to run. `provoked` is how the run with an
    id out of range died, where it was asked for, `survived` that it did not die.
    """

    engine: str
    backend: str
    device: str
    dtype: str
    stages: tuple[Stage, ...] = ()
    reached: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    out_of_range: tuple[tuple[str, int, int], ...] = ()
    peak_bytes: int | None = None
    death: Death | None = None
    provoked: Death | None = None
    survived: bool = False
    fidelity: Fidelity | None = None
    skipped: str | None = None

    @property
    def verdict(self) -> Verdict:
        """`skipped` also where the machine could not run it."""
        if self.skipped is not None or (self.death is not None and not self.death.by_draft):
            return "skipped"
        return "fail" if self.death or self.reached or self.out_of_range else "pass"
