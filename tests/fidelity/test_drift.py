"""What is measured of two matrices, on numbers that can be worked out by hand."""

import math
from typing import Any

import pytest
from unpack.layers import quantized

pytestmark = pytest.mark.warmup
torch = pytest.importorskip("torch")

from dflash_audit.warmup import drift as measured  # noqa: E402
from dflash_audit.warmup.drift import drift  # noqa: E402
from dflash_audit.warmup.stored_form import StoredForm, stored_form  # noqa: E402

FORM = StoredForm("int", 4, 4)
ONES = torch.ones(3, 8)


def test_no_difference() -> None:
    found = drift("a", FORM, ONES.bfloat16(), ONES)
    assert found is not None
    assert (found.matrix, found.numbers, found.bits, found.width) == ("a", "int", 4, 4)
    assert (found.error, found.gain, found.group, found.shift) == (0.0, 1.0, 1.0, 0.0)
    assert found.decibels is None


def test_a_group_of_another_scale() -> None:
    ours = ONES.clone()
    ours[1, 4:] = 3.0
    found = drift("a", FORM, ours, ONES)
    assert found is not None
    assert (found.gain, found.group, found.shift) == (2.0, 3.0, 2.0)
    assert found.error == pytest.approx(math.sqrt(4 * 4 / 24))
    assert found.decibels == pytest.approx(-10 * math.log10(16 / 24))


def test_half_a_scale_is_as_far_as_twice() -> None:
    ours = ONES.clone()
    ours[0], ours[1] = 0.4, 2.0
    found = drift("a", FORM, ours, ONES)
    assert found is not None and found.gain == pytest.approx(0.4)


def test_a_mean_that_is_off() -> None:
    signs = torch.tensor([1.0, -1.0]).repeat(3, 4)
    ours = signs.clone()
    ours[2, :4] -= 0.5
    found = drift("a", FORM, ours, signs)
    assert found is not None
    assert (found.gain, found.group, found.shift) == (1.0, 1.0, -0.5)


def test_faint_rows_and_groups_say_nothing() -> None:
    theirs = ONES.clone()
    theirs[0], theirs[1, :4] = 0.01, 0.01
    found = drift("a", FORM, torch.where(theirs == 1, 1.0, 0.0), theirs)
    assert found is not None
    assert found.gain == pytest.approx(1.0, abs=1e-3)
    assert (found.group, found.shift) == (1.0, 0.0)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_not_finite_is_passed_over(value: float) -> None:
    ours = ONES.clone()
    ours[0, 0] = value
    assert drift("a", FORM, ours, ONES) is None
    assert drift("a", FORM, ONES, ours) is None
    assert drift("a", FORM, ONES, 0 * ONES) is None


def test_a_large_matrix_is_compared_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(0)
    ours, theirs = torch.randn((2, 50, 64), generator=generator)
    whole = drift("a", FORM, ours, theirs)
    monkeypatch.setattr(measured, "PIECE", 64 * 7)
    assert drift("a", FORM, ours, theirs) == whole


def group(**weights: Any) -> dict[str, Any]:
    return {"config_groups": {"all": {"targets": ["Linear"], "weights": weights, "input_activations": None}}}


PACKED = {"format": "pack-quantized"}
FP8 = {"quant_method": "fp8", "activation_scheme": "dynamic"}


@pytest.mark.parametrize(
    ("method", "config", "form"),
    [
        ("compressed-tensors", PACKED | group(num_bits=8, strategy="channel"), ("int", 8, 256)),
        (
            "compressed-tensors",
            PACKED | group(num_bits=4, strategy="group", group_size=64),
            ("int", 4, 64),
        ),
        (
            "compressed-tensors",
            {"format": "float-quantized"} | group(type="float", num_bits=8, strategy="tensor"),
            ("float", 8, 256),
        ),
        ("fp8", FP8, ("float", 8, 256)),
        (
            "fp8",
            FP8 | {"is_checkpoint_fp8_serialized": True, "weight_block_size": [128, 128]},
            ("float", 8, 128),
        ),
        ("awq_marlin", {"bits": 4, "group_size": 64, "zero_point": True}, ("int", 4, 64)),
        ("gptq_marlin", {"bits": 8, "group_size": 32, "desc_act": True, "sym": True}, ("int", 8, 32)),
        ("modelopt_fp4", {"quant_algo": "NVFP4", "group_size": 16}, ("float", 4, 16)),
    ],
)
def test_the_form_is_read_off_the_parameters(
    method: str, config: dict[str, Any], form: tuple[str, int, int]
) -> None:
    module = quantized(method, {"quant_method": method.partition("_")[0]} | config)
    found = stored_form(module)
    assert (found.numbers, found.bits, found.width) == form
