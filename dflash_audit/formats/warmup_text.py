"""The warm-ups for a person in a terminal: the verdict of each engine, where it ran, what it met."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from rich.padding import Padding
from rich.text import Text

from dflash_audit.byte_count import byte_count
from dflash_audit.fold import title
from dflash_audit.formats.clean import clean

if TYPE_CHECKING:
    from dflash_audit.warmup.result import Death, Fidelity, Verdict, WarmUp

WORDS: Final[dict["Verdict", tuple[str, str]]] = {
    "pass": ("runs", "bold green"),
    "fail": ("does not run as it should", "bold red"),
    "skipped": ("not run", "yellow"),
}


def parts(warmups: Sequence["WarmUp"]) -> Iterator[Text | Padding]:
    """A heading, and for each warm-up its verdict over some lines."""
    yield Text("\nWarm-up", style="bold")
    for warmup in warmups:
        yield Text.assemble(f"  {warmup.engine}  ", WORDS[warmup.verdict])
        for told in sentences(warmup):
            yield Padding(Text(clean(told)), (0, 0, 0, 4), expand=False)


def sentences(warmup: "WarmUp") -> Iterator[str]:
    """Where it ran and what it met, a line each."""
    if warmup.skipped is not None:
        yield f"Nothing was run, so nothing is known of its numbers: {warmup.skipped}"
        return
    if warmup.death is not None:
        yield _death(warmup.death)
    else:
        seconds = sum(stage.seconds for stage in warmup.stages)
        peak = f", at most {byte_count(warmup.peak_bytes)}" if warmup.peak_bytes is not None else ""
        yield f"{warmup.backend} on {warmup.device} in {warmup.dtype}, {seconds:.1f} s{peak}"
    if warmup.reached:
        yield f"NaN or infinities in {', '.join(warmup.reached)}"
    if warmup.fidelity is not None:
        yield from against(warmup.fidelity)
    if warmup.provoked is not None:
        yield f"provoked with an id out of range: {_death(warmup.provoked)}"
    if warmup.survived:
        yield "provoked with an id out of range: nothing stopped it"


def _death(death: "Death") -> str:
    return f"{death.kind} in the stage {death.stage}: {death.detail}"


def against(fidelity: "Fidelity") -> Iterator[str]:
    """How far the draft is from the one that it is held against."""
    told = []
    if fidelity.cosines:
        last = fidelity.cosines[-1]
        told.append(
            f"mean cosine of the last hidden states {last.mean:.4f} (rounding alone {last.rounding:.4f})"
        )
    if fidelity.first is not None and fidelity.common is not None:
        usual = fidelity.common_rounding
        rounding = "" if usual is None else f" (rounding alone {usual:.0%})"
        told.append(f"first candidate the same in {fidelity.first:.0%}")
        told.append(f"{fidelity.common:.0%} of all in common{rounding}")
    yield f"against {fidelity.against}: {', '.join(told)}"
    if fidelity.rescaled:
        yield f"weights not judged where the norms are others: {title(fidelity.rescaled)}"
    judged = filter(fidelity.judges, fidelity.drifts)
    worst = max(judged, key=lambda drift: drift.error, default=None)
    if worst is not None:
        noise = "no noise" if worst.decibels is None else f"{worst.decibels:.1f} dB"
        yield f"furthest matrix: {worst.matrix}, {noise}"
