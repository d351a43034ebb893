"""What the tensors of a quantized module are taken for."""

import pytest

from dflash_audit.diagnosis.stored import Stored, stored_modules
from dflash_audit.diagnosis.stored_layout import layout
from dflash_audit.sources.checkpoint import Tensor

INPUTS = 256

Leaves = dict[str, tuple[str, tuple[int, ...]]]


def stored(leaves: Leaves) -> Stored:
    tensors = [Tensor(f"fc.{leaf}", dtype, shape, "x") for leaf, (dtype, shape) in leaves.items()]
    return stored_modules(tensors)["fc"]


@pytest.mark.parametrize(
    ("leaves", "expected"),
    [
        (
            {"weight_packed": ("I32", (128, 32)), "weight_scale": ("BF16", (128, 2))},
            "4 bits in groups of 128",
        ),
        ({"weight_packed": ("I32", (128, 64)), "weight_scale": ("F16", (128, 1))}, "8 bits by row"),
        (
            {"weight_packed": ("U8", (128, 128)), "weight_scale": ("F8_E4M3", (128, 16))},
            "nvfp4-pack-quantized",
        ),
        ({"qweight": ("I32", (32, 128)), "scales": ("F16", (2, 128))}, "GPTQ"),
        ({"qweight": ("I32", (256, 16)), "scales": ("F16", (2, 128))}, "AWQ"),
        ({"weight": ("U8", (128, 128)), "weight_scale": ("F8_E4M3", (128, 16))}, "ModelOpt W4A16_NVFP4"),
        ({"weight": ("U8", (128, 128)), "input_scale": ("F32", ())}, "ModelOpt NVFP4"),
        ({"weight": ("F8_E4M3", (128, 256)), "weight_scale_inv": ("F32", (1, 2))}, "FP8 by block"),
        ({"weight": ("F8_E4M3", (128, 256)), "weight_scale": ("F32", (128, 1))}, "FP8 by row"),
        ({"weight": ("F8_E4M3", (128, 256)), "weight_scale": ("F32", ())}, "FP8 by tensor"),
        ({"weight": ("F8_E4M3", (128, 256))}, "FP8 without its scales"),
        ({"weight": ("I8", (128, 256)), "weight_scale": ("F32", (128, 1))}, "INT8"),
        ({"weight": ("U32", (128, 32)), "scales": ("F16", (128, 4))}, "MLX"),
        ({"weight": ("C64", (128, 32))}, "no layout that is known here"),
    ],
)
def test_layout(leaves: Leaves, expected: str) -> None:
    assert expected in layout(stored(leaves), INPUTS)
