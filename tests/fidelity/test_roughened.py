"""Noise that stands in for rounding: as large as it should be, and doing what rounding does."""

import math

import pytest

pytestmark = pytest.mark.warmup
torch = pytest.importorskip("torch")

from reference.random_draft import RandomWeights, cosine  # noqa: E402

from dflash_audit.warmup.result import Drift, Numbers  # noqa: E402
from dflash_audit.warmup.roughened import Roughened, level  # noqa: E402


def of(numbers: Numbers, bits: int, *errors: float) -> list[Drift]:
    return [Drift("a", numbers, bits, 128, error=e, gain=1.0, group=1.0, shift=0.0) for e in errors]


@pytest.mark.parametrize(
    ("drifts", "rescaled", "rounds_input", "expected"),
    [
        ([], False, False, 0.0),
        (of("int", 4, 0.1), False, False, 0.1),
        (of("int", 4, 0.1, 0.2), False, False, math.sqrt(0.025)),
        (of("int", 4, 1.0), False, False, 0.35),  # no honest rounding does more
        (of("int", 4, 1.0), True, False, 0.11),
        (of("float", 16, 0.0), True, False, 0.0),
        (of("float", 8, 0.027), False, True, math.hypot(0.027, 0.03)),
    ],
)
def test_the_size_that_rounding_explains(
    drifts: list[Drift], rescaled: bool, rounds_input: bool, expected: float
) -> None:
    assert level(drifts, rescaled, rounds_input) == pytest.approx(expected)


def test_noise_in_the_inputs_does_what_errors_in_the_weights_do() -> None:
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn((512, 256), generator=generator)
    x = torch.randn((64, 256), generator=generator) * torch.linspace(0.1, 10, 64).unsqueeze(1)
    tensors = {"one.weight": weight, "other.weight": weight}
    weights = Roughened(RandomWeights(tensors), {"one": 0.2}, torch.Generator().manual_seed(1))

    exact = x @ weight.T
    noise = 0.2 * torch.randn(weight.shape, generator=generator)

    assert torch.equal(weights.linear("other")(x), exact)
    noisy = cosine(weights.linear("one")(x), exact)
    assert noisy == pytest.approx(cosine(x @ (weight + noise).T, exact), abs=2e-3)
    assert noisy == pytest.approx(1 / math.sqrt(1 + 0.2**2), abs=2e-3)
