"""The checkpoints of real values: in each format's arithmetic, weights are as large as dense ones."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from parity.case import FIXTURES
from real_values import materialize_real

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.warmup

from safetensors import safe_open  # noqa: E402

Read = Callable[[str], Any]

E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
"""The numbers of a 4-bit float, by its three lower bits (OCP Microscaling Formats 1.0)."""


def read_of(case: str, folder: Path) -> Read:
    materialize_real(FIXTURES / "cases" / case, folder)
    file = safe_open(folder / "model.safetensors", framework="pt")

    def read(name: str) -> Any:
        return file.get_tensor(f"layers.0.mlp.gate_proj.{name}")

    return read


def packed(numbers: Any, bits: int) -> Any:
    """int32 [rows, n] -> [rows, n * 32 / bits], the lowest bits first."""
    shifts = torch.arange(0, 32, bits)
    return (numbers[..., None] >> shifts & 2**bits - 1).flatten(-2).float()


def four_bit_floats(numbers: Any) -> Any:
    nibbles = torch.stack((numbers & 15, numbers >> 4), -1).flatten(-2).int()
    return torch.tensor(E2M1)[(nibbles & 7).long()] * (1 - 2 * (nibbles >> 3))


def grouped(weight: Any, scales: Any) -> Any:
    return weight * scales.float().repeat_interleave(weight.shape[-1] // scales.shape[-1], -1)


def int8(read: Read) -> Any:
    return grouped(packed(read("weight_packed"), 8) - 128, read("weight_scale"))


def int4(read: Read) -> Any:
    return grouped(packed(read("weight_packed"), 4) - 8, read("weight_scale"))


def fp8(read: Read) -> Any:
    return read("weight").float() * read("weight_scale").float()


def fp8_blocks(read: Read) -> Any:
    weight, scales = read("weight").float(), read("weight_scale_inv")
    rows, columns = scales.repeat_interleave(128, 0)[: len(weight)], weight.shape[1]
    return weight * rows.repeat_interleave(128, 1)[:, :columns]


def nvfp4(read: Read) -> Any:
    return grouped(four_bit_floats(read("weight_packed")), read("weight_scale")) / read("weight_global_scale")


def modelopt_nvfp4(read: Read) -> Any:
    return grouped(four_bit_floats(read("weight")), read("weight_scale")) * read("weight_scale_2")


def gptq(read: Read) -> Any:
    """[inputs, outputs]; what is stored as zero point is one less than it."""
    weight, scales = packed(read("qweight").T, 4).T, read("scales").float()
    zeros, groups = packed(read("qzeros"), 4) + 1, read("g_idx").long()
    return (weight - zeros[groups]) * scales[groups]


FORMATS: Mapping[str, Callable[[Read], Any]] = {
    "dense-dflash2": lambda read: read("weight").float(),
    "ct-dflash2-w8a16_seed": int8,
    "ct-dflash2-w4a16_all": int4,
    "ct-dflash2-fp8dyn_all": fp8,
    "fp8-block-all": fp8_blocks,
    "ct-dflash2-nvfp4a16_all": nvfp4,
    "modelopt-nvfp4-config": modelopt_nvfp4,
    "gptq-all": gptq,
}


@pytest.mark.parametrize("case", FORMATS)
def test_weights_are_as_large_as_dense_ones(case: str, tmp_path: Path) -> None:
    weight = FORMATS[case](read_of(case, tmp_path))
    assert math.sqrt(weight.square().mean()) == pytest.approx(0.03, rel=0.25)
    assert abs(float(weight.mean())) < 0.001


@pytest.mark.parametrize("case", ["ct-dflash2-w8a16_seed", "ct-dflash2-w4a16_all"])
def test_shapes_are_those_of_the_dense_weight(case: str, tmp_path: Path) -> None:
    dense = read_of("dense-dflash2", tmp_path / "dense")("weight")
    assert read_of(case, tmp_path / "packed")("weight_shape").tolist() == list(dense.shape)


def test_a_tensor_has_the_same_numbers_in_two_cases(tmp_path: Path) -> None:
    first, second = read_of("dense-dflash1", tmp_path / "1"), read_of("dense-dflash2", tmp_path / "2")
    assert torch.equal(first("weight"), second("weight"))
