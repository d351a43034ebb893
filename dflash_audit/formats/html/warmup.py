"""The warm-ups: for each engine its stages in a line, with where numbers are not finite and where it died."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from dflash_audit.byte_count import byte_count
from dflash_audit.formats.html.markup import Markup, element, joined
from dflash_audit.formats.warmup_text import against

if TYPE_CHECKING:
    from dflash_audit.warmup.result import Death, Stage, Verdict, WarmUp

WORDS: Final[dict["Verdict", tuple[str, str]]] = {
    "pass": ("runs", "pass"),
    "fail": ("does not run as it should", "fail"),
    "skipped": ("not run", "skipped"),
}


def warmups(each: Sequence["WarmUp"]) -> Markup:
    """The section, nothing where no warm-up was asked for."""
    if not each:
        return Markup()
    return element("section", element("h2", "Warm-up"), *map(_warmup, each), id="warmup")


def _warmup(warmup: "WarmUp") -> Markup:
    word, verdict = WORDS[warmup.verdict]
    return element(
        "article",
        element(
            "h3",
            element("code", warmup.engine),
            " ",
            element("span", word, class_=f"pill {verdict}"),
            class_="warmup-verdict",
        ),
        element("ul", *(element("li", line) for line in _told(warmup)), class_="told"),
        element("ol", *_stages(warmup), class_="timeline") if warmup.stages or warmup.death else "",
        class_="warmup",
    )


def _told(warmup: "WarmUp") -> Iterator[str]:
    if warmup.skipped is not None:
        yield f"Nothing was run, so nothing is known of its numbers: {warmup.skipped}"
        return
    seconds = sum(stage.seconds for stage in warmup.stages)
    peak = f", at most {byte_count(warmup.peak_bytes)}" if warmup.peak_bytes is not None else ""
    yield f"{warmup.backend} on {warmup.device} in {warmup.dtype}, {seconds:.1f} s{peak}"
    if warmup.reached:
        yield f"NaN or infinities in {', '.join(warmup.reached)}"
    for source in warmup.sources:
        reads = ", ".join((*source.unfilled, *source.tensors)) or "finite numbers only"
        yield f"they come out of {source.module} in the stage {source.stage}, which reads {reads}"
    if warmup.fidelity is not None:
        yield from against(warmup.fidelity)
    for name, at, rows in warmup.out_of_range:
        yield f"the id {at:,} indexes past {name}, which has {rows:,} rows"
    if warmup.provoked is not None:
        yield f"provoked with an id out of range: {_death(warmup.provoked)}"
    if warmup.survived:
        yield "provoked with an id out of range: nothing stopped it"


def _stages(warmup: "WarmUp") -> Iterator[Markup]:
    for stage in warmup.stages:
        yield _stage(stage)
    if warmup.death is not None:
        yield element(
            "li",
            element("b", warmup.death.stage),
            element("span", _death(warmup.death)),
            class_="stage died",
        )


def _stage(stage: "Stage") -> Markup:
    if stage.finite:
        largest = f", up to {stage.largest:.3g}" if stage.largest is not None else ""
        said, kind = f"finite{largest}", "finite"
    else:
        said, kind = f"{stage.nonfinite:.1%} NaN or infinite", "nonfinite"
    return element(
        "li",
        element("b", stage.name),
        joined(element("span", f"{stage.seconds:.3f} s"), element("span", said)),
        class_=f"stage {kind}",
        data_seconds=f"{stage.seconds:.6f}",
    )


def _death(death: "Death") -> str:
    return f"{death.kind} in the stage {death.stage}: {death.detail}"
