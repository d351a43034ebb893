"""A comparison as a person reads it."""

from dataclasses import replace

from dflash_audit.formats.warmup_text import parts
from dflash_audit.warmup.result import Cosine, Drift, Fidelity, Stage, WarmUp

FIDELITY = Fidelity(
    against="org/original",
    drifts=(
        Drift("fc", "int", 8, 128, error=0.01, gain=1.0, group=1.0, shift=0.0),
        Drift("layers.0.mlp.down_proj", "int", 4, 128, error=0.1, gain=1.0, group=1.0, shift=0.0),
    ),
    cosines=(Cosine("context", 0.5, 0.25, 0.5), Cosine("norm", 0.98765, 0.9, 0.95)),
    first=0.5,
    common=0.75,
    common_rounding=0.8,
    rescaled=(),
)


def lines(fidelity: Fidelity | None) -> list[str]:
    warmup = WarmUp("sglang-next", "reference", "cpu", "bfloat16", (Stage("norm", 1.0),), fidelity=fidelity)
    return [str(getattr(part, "renderable", part)) for part in parts([warmup])][3:]


def test_the_last_hidden_states_the_candidates_and_the_furthest_matrix() -> None:
    assert lines(FIDELITY) == [
        "against org/original: mean cosine of the last hidden states 0.9877 (rounding alone 0.9500),"
        " first candidate the same in 50%, 75% of all in common (rounding alone 80%)",
        "furthest matrix: layers.0.mlp.down_proj, 20.0 dB",
    ]


def test_what_there_is_not_is_not_told() -> None:
    assert lines(None) == []
    exact = replace(FIDELITY.drifts[0], error=0.0)
    assert lines(replace(FIDELITY, drifts=(exact,), first=None, common=None)) == [
        "against org/original: mean cosine of the last hidden states 0.9877 (rounding alone 0.9500)",
        "furthest matrix: fc, no noise",
    ]
    assert lines(replace(FIDELITY, rescaled=("layers.0",)))[1:] == [
        "weights not judged where the norms are others: layers.0",
        "furthest matrix: fc, 40.0 dB",
    ]
