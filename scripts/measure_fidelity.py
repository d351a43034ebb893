"""Measure what honest rounding and what faults do to a draft, and write docs/fidelity.md.

    python scripts/measure_fidelity.py docs/fidelity.md

It takes some minutes on a CPU, with the Python of an environment that holds the extra `warmup`. Drafts of
random weights are quantized by compressed-tensors' own functions, rounded to the nearest, and held against
themselves before; then with a fault in one layer, and in all.
"""

import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from fidelity.drafts import SPREADS, compare, write_draft  # noqa: E402
from fidelity.faults import faults_of  # noqa: E402
from fidelity.quantize import LAYOUTS, Fault, write_quantized  # noqa: E402

from dflash_audit.engine_run import EngineRun  # noqa: E402
from dflash_audit.rules import warmup_hidden_drift, warmup_weight_drift  # noqa: E402
from dflash_audit.rules.warmup_hidden_drift import FURTHER, NEAR, further  # noqa: E402
from dflash_audit.rules.warmup_weight_drift import LIMITS  # noqa: E402
from dflash_audit.warmup.result import Drift, Fidelity, WarmUp  # noqa: E402

SMALL: Final = (256, 2)
LARGER: Final = (1024, 4)
"""Hidden size and layers. Faults are tried on the small ones."""

RUN: Final = EngineRun("sglang-next")


@dataclass(frozen=True)
class Measured:
    """One draft, quantized and held against itself before; `fault` is empty for honest rounding."""

    size: tuple[int, int]
    spread: str
    layout: str
    fault: str
    everywhere: bool
    warmup: WarmUp

    @property
    def fidelity(self) -> Fidelity:
        assert self.warmup.fidelity is not None
        return self.warmup.fidelity

    @property
    def drifts(self) -> list[Drift]:
        return [drift for drift in self.fidelity.drifts if drift.bits < 16]

    @property
    def cosine(self) -> float:
        return min(cosine.mean for cosine in self.fidelity.cosines)

    @property
    def caught(self) -> bool:
        return any(True for _ in warmup_weight_drift.find(self.warmup, RUN))

    @property
    def hidden_errors(self) -> bool:
        return any(found.severity == "error" for found in warmup_hidden_drift.find(self.warmup, RUN))


def main() -> None:
    """Measure all, and write the page."""
    with tempfile.TemporaryDirectory() as scratch:
        measured = [*_all(Path(scratch))]
    Path(sys.argv[1]).write_text(_page(measured))


def _all(scratch: Path) -> Iterator[Measured]:
    for size in (SMALL, LARGER):
        for spread in SPREADS:
            dense = write_draft(scratch / f"{size}-{spread}", *size, spread)
            for layout in LAYOUTS:
                yield _measured(scratch, dense, size, spread, layout)
                if size == SMALL:
                    for everywhere in (False, True):
                        for name, fault in faults_of(layout, everywhere).items():
                            yield _measured(scratch, dense, size, spread, layout, name, fault, everywhere)


def _measured(
    scratch: Path,
    dense: Path,
    size: tuple[int, int],
    spread: str,
    layout: str,
    name: str = "",
    fault: Fault | None = None,
    everywhere: bool = False,
) -> Measured:
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        quantized = write_quantized(Path(folder) / "draft", dense, layout, fault)
        return Measured(size, spread, layout, name, everywhere, compare(quantized, dense))


PAGE: Final = """# How far a quantized draft may be from its original

Written by `scripts/measure_fidelity.py`. It backs the limits of `warmup-weight-drift` and
`warmup-hidden-drift`, which judge a warm-up with `--against`.

DFlash2 drafts of random weights, {sizes}, are quantized by the functions of compressed-tensors
{library} to the nearest, and held against themselves before, on the backend reference on a CPU. Their weights
are *normal*; with *outliers* (three rows and three columns of each matrix ten times as large); *heavy*-tailed
(Student's t of three degrees of freedom); or *uneven* (rows a factor of two apart as a rule).

## Weights

Of each matrix, with w the original's weights and w' the unpacked ones:

| measure | |
|---|---|
| gain | w' · w / w · w over a row, the one furthest from 1: how far it, or its inverse, is above 1 |
| group | the same over the weights that share a scale |
| shift | the mean of w' - w over such a group, over the root mean square of w there; the largest |
| error | the norm of w' - w over that of w |

Rows and groups of less than a sixteenth of the usual row's root mean square are left out: a scale that a
whole matrix shares rounds them to nothing. What rounding does to the weights of a group averages out in gain
and shift, so outliers, which coarsen it, move them little; they do move the error, so its limit is wide.

The most that honest rounding showed, over all four kinds of weights and both sizes, each before the limit
beyond which it is an error:

{honest}

{honest_named} of {honest_drafts} honest drafts are named. MXFP4 is not in the table, for the engines refuse
it in a draft, nor are 4-bit integers *by channel*, out of which rows with outliers come doubled or empty:
they are named.

## Faults

One fault in one matrix of the small drafts (an `up_proj`), and how many drafts, over layouts and kinds of
weights, `warmup-weight-drift` names. The least is the greatest of a draft's measures as a multiple of its
limit, for the draft where that is least.

{faults}

{missed}

## Hidden states and candidates

Both drafts run on the same random inputs, four blocks of 7 slots after up to 64 tokens. How far an error
grows hangs on the weights: with FP8 by block, hidden states of a full-size draft of random weights (5 layers
of 5120) come to a cosine of 0.80 (noise as below: 0.81), those of the small ones here to 0.98. So the
original runs once more, with noise in each linear's inputs of the relative size of the weights' own error
(as far as that is honest) and of the rounding of inputs. How far the cosine is from 1, over how far that
leaves it, is what is judged: it is an error beyond {further:g}, in any stage, where the noise counts as
leaving it {near:g} from 1 at least.

The least mean cosine of a stage, by the kind of weights, of both sizes the lower; the most that the ratio
comes to; the least share of candidates in common (of a random head, whose logits lie close together), and
what the noise leaves of it in the same draft:

{hidden}

{honest_errors} of {honest_drafts} honest drafts have an error. Of {all_drafts} drafts with a fault in
all layers {all_errors} have one, although the noise is as large as the fault, up to what may be honest.

Scales that are moved into norms (AWQ, SmoothQuant) make weights differ by design. The noise then has the
usual size for the stored bits, and the hidden states alone judge.
"""


def _page(measured: list[Measured]) -> str:
    honest = [one for one in measured if not one.fault]
    faulty = [one for one in measured if one.fault and not one.everywhere]
    everywhere = [one for one in measured if one.everywhere]
    heads = ("gain", "limit", "group", "limit", "shift", "limit", "error", "limit")
    return PAGE.format(
        sizes=" and ".join(f"{layers} layers of {hidden}" for hidden, layers in (SMALL, LARGER)),
        library=version("compressed-tensors"),
        honest=_table(("layout", *heads), _honest_rows(honest)),
        honest_named=sum(one.caught for one in honest),
        honest_drafts=len(honest),
        faults=_table(("fault", "named", "of", "least"), _fault_rows(faulty)),
        missed=_missed(faulty),
        hidden=_table(("layout", *SPREADS, "ratio", "in common", "noise"), _hidden_rows(honest)),
        further=FURTHER,
        near=NEAR,
        honest_errors=sum(one.hidden_errors for one in honest),
        all_drafts=len(everywhere),
        all_errors=sum(one.hidden_errors for one in everywhere),
    )


def _honest_rows(honest: list[Measured]) -> Iterator[tuple[str, ...]]:
    for layout in LAYOUTS:
        drifts = [drift for one in honest if one.layout == layout for drift in one.drifts]
        limits = LIMITS[drifts[0].numbers, drifts[0].bits]
        cells: list[str] = []
        for name in ("gain", "group", "shift", "error"):
            most = max(warmup_weight_drift.measure(drift, name) for drift in drifts)
            cells += [f"{most:.4f}", f"{getattr(limits, name):g}"]
        yield layout, *cells


def _fault_rows(faulty: list[Measured]) -> Iterator[tuple[str, ...]]:
    for fault in dict.fromkeys(one.fault for one in faulty):
        those = [one for one in faulty if one.fault == fault]
        least = min(map(_excess, those))
        yield fault, str(sum(one.caught for one in those)), str(len(those)), f"{least:.1f}"


def _missed(faulty: list[Measured]) -> str:
    missed = [f"{one.fault} ({one.layout}, {one.spread})" for one in faulty if not one.caught]
    return f"Not named: {'; '.join(missed)}." if missed else "None is missed."


def _excess(one: Measured) -> float:
    """The greatest measure of a draft as a multiple of its limit."""
    excess = [
        warmup_weight_drift.measure(drift, name) / limit
        for drift in one.drifts
        for name, limit in LIMITS[drift.numbers, drift.bits]._asdict().items()
    ]
    return float(max(excess))


def _hidden_rows(honest: list[Measured]) -> Iterator[tuple[str, ...]]:
    for layout in LAYOUTS:
        those = [one for one in honest if one.layout == layout]
        cosines = (min(one.cosine for one in those if one.spread == spread) for spread in SPREADS)
        ratio = max(further(cosine) for one in those for cosine in one.fidelity.cosines)
        least = min(those, key=lambda one: one.fidelity.common or 0.0).fidelity
        shares = (f"{least.common:.2f}", f"{least.common_rounding:.2f}")
        yield layout, *(f"{cosine:.3f}" for cosine in cosines), f"{ratio:.1f}", *shares


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [heads, ("---",) * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    main()
