"""Inputs as kernels quantize them."""

from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.warmup
torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from safetensors.torch import load_file  # noqa: E402

from dflash_audit.refusal import Refused  # noqa: E402
from dflash_audit.warmup.unpack.rounding import (  # noqa: E402
    fp8_by_group,
    fp8_by_token,
    fp8_static,
    int8_by_token,
    mxfp8,
    nvfp4,
    to_fp4,
)

ROUNDINGS = {
    "fp8 by token": fp8_by_token,
    "fp8 by group": lambda x: fp8_by_group(x, 32),
    "static fp8": lambda x: fp8_static(x, torch.tensor(0.01)),
    "mxfp8": mxfp8,
    "nvfp4": lambda x: nvfp4(x, torch.tensor(400.0)),
    "int8": int8_by_token,
}


def test_mxfp8_is_what_sglangs_own_function_makes() -> None:
    recorded = load_file(Path(__file__).parents[2] / "fixtures/unpacked/mxfp8.safetensors")

    assert torch.equal(mxfp8(recorded["x"]), recorded["rounded"])


@pytest.mark.parametrize("name", ROUNDINGS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_keeps_shape_dtype_zeros_and_nans(name: str, dtype: Any) -> None:
    x = torch.randn((2, 3, 64), generator=torch.Generator().manual_seed(0)).to(dtype)
    x[0, 0] = 0
    x[1, 2, 5] = torch.nan

    y = ROUNDINGS[name](x)

    assert (y.shape, y.dtype) == (x.shape, dtype)
    assert y[0, 0].tolist() == [0.0] * 64
    assert y[1, 2, 5].isnan()
    assert y[:1].isfinite().all()
    # No rounding is further off than FP4's, a sixth of the greatest number in its group.
    assert ((y[0] - x[0]).abs() <= x[0].abs().amax(-1, keepdim=True) / 6 + 1e-2).all()


def test_fp4_rounds_ties_to_even_and_stops_at_six() -> None:
    values = torch.tensor([0.25, 0.26, 0.75, 1.25, 1.75, 2.5, 2.6, 3.5, 5.0, 5.1, 7.0, -0.75, -99.0])

    rounded = to_fp4(values).tolist()

    assert rounded == [0.0, 0.5, 1.0, 1.0, 2.0, 2.0, 3.0, 4.0, 4.0, 6.0, 6.0, -1.0, -6.0]


def test_int8_rounds_halves_away_from_zero() -> None:
    x = torch.tensor([[127.0, 0.5, 1.5, 2.5, -0.5, -2.5, 2.4]])

    assert int8_by_token(x).tolist() == [[127.0, 1.0, 2.0, 3.0, -1.0, -3.0, 2.0]]


def test_static_fp8_saturates() -> None:
    assert fp8_static(torch.tensor([[1.0, 500.0, -500.0]]), torch.tensor(1.0)).tolist() == [
        [1.0, 448.0, -448.0]
    ]


@pytest.mark.parametrize(
    ("rounding", "width"),
    [
        (lambda x: fp8_by_group(x, 128), 128),
        (mxfp8, 32),
        (lambda x: nvfp4(x, torch.tensor(1.0)), 16),
    ],
    ids=["fp8", "mxfp8", "nvfp4"],
)
def test_inputs_that_are_no_whole_groups_are_refused_in_a_sentence(rounding: Any, width: int) -> None:
    assert rounding(torch.ones(2, 2 * width)).shape == (2, 2 * width)
    with pytest.raises(Refused, match=f"no kernel quantizes {width + 8} inputs in groups of {width}"):
        rounding(torch.ones(2, width + 8))
