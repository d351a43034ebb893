"""The registry, what an engine mixes and what it does not, and forms that no H200 builds."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from unpack.layers import Stored, quantized

pytestmark = pytest.mark.warmup
torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from safetensors.torch import load_file  # noqa: E402

from dflash_audit.tree import Module, Parameter  # noqa: E402
from dflash_audit.warmup.unpack import SCHEMES, scaling, unpack  # noqa: E402

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "fixtures"
LINEAR = re.compile(r"CompressedTensorsW\w+|\w+LinearMethod|\w+LinearScheme")
FP8 = {"quant_method": "fp8", "activation_scheme": "dynamic"}


def named_schemes() -> Iterator[str]:
    """Every text in the quantization methods that is the name of a linear's scheme."""
    for path in (ROOT / "dflash_audit/quantization").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield from LINEAR.findall(node.value) if LINEAR.fullmatch(node.value) else ()


def test_every_scheme_has_an_unpacker() -> None:
    assert set(named_schemes()) == set(SCHEMES)


def test_the_library_is_imported_for_its_own_schemes_alone() -> None:
    files = sorted({place.partition(":")[0] for place in SCHEMES.values()} - {"compressed_tensors"})
    imports = "; ".join(f"import dflash_audit.warmup.unpack.{file}" for file in files)
    code = f"import sys; {imports}; print('compressed_tensors' in sys.modules)"

    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert run.stdout.strip() == "False"


def test_a_dense_weight_is_not_copied() -> None:
    weight = torch.ones(4, 8, dtype=torch.bfloat16)
    plain = Module("fc", "Linear", (Parameter("weight", (4, 8), "bfloat16"),))

    linear = unpack(plain, {"weight": weight})

    assert linear.weight is weight
    assert linear.bias is None
    assert linear.round_input is None


def test_the_quantized_seed_is_the_seed() -> None:
    pytest.importorskip("compressed_tensors")
    dense = load_file(FIXTURES / "seed-bf16/model.safetensors")
    packed = load_file(FIXTURES / "seed-w8a16/model.safetensors")
    names = [name.removesuffix(".weight_packed") for name in packed if name.endswith(".weight_packed")]
    assert len(names) == 9
    weights = {"num_bits": 8, "strategy": "group", "group_size": 128}
    config = {
        "quant_method": "compressed-tensors",
        "format": "pack-quantized",
        "config_groups": {"W8A16": {"targets": ["Linear"], "weights": weights}},
    }
    for name in names:
        original = dense[f"{name}.weight"].float()
        module = quantized(
            "compressed-tensors", config, outputs=(original.shape[0],), inputs=original.shape[1]
        )
        stored = {
            key.rpartition(".")[2]: value for key, value in packed.items() if key.startswith(f"{name}.")
        }

        found = unpack(module, stored).weight.float()

        scales = stored["weight_scale"].float().repeat_interleave(128, dim=1)
        # Half a step by rounding, a step where the range clips, and the weight's own bfloat16.
        assert ((found - original).abs() <= scales + found.abs() / 256).all()
        assert (found - original).norm() / original.norm() < 0.01


@pytest.mark.parametrize(
    ("method", "config", "scale"),
    [
        ("fp8", FP8, "weight_scale"),
        ("modelopt_fp8", {"quant_algo": "FP8"}, "weight_scale"),
        ("modelopt_fp8", {"quant_algo": "FP8"}, "input_scale"),
        ("fp8", FP8 | {"activation_scheme": "static"}, "input_scale"),
        ("w8a8_int8", {"quant_method": "w8a8_int8"}, "weight_scale"),
        ("fp8", FP8 | {"weight_block_size": [32, 32]}, "weight_scale_inv"),
    ],
)
def test_the_scale_of_another_matrix_changes_the_sums(
    method: str, config: dict[str, Any], scale: str
) -> None:
    module = quantized(method, config, "QKVParallelLinear", (64, 32, 32), 64)
    generator = torch.Generator().manual_seed(5)
    stored = {p.name: filled(p, generator) for p in module.parameters}
    x = torch.randn((4, 64), generator=generator)
    mixed = stored | {scale: stored[scale].flip(0) * 1.3}

    right, wrong = unpack(module, stored)(x), unpack(module, mixed)(x)

    assert torch.equal(right, unpack(module, dict(stored))(x))
    assert (right - wrong).norm() > 0.02 * right.norm()


def filled(parameter: Parameter, generator: Any) -> Any:
    dtype = getattr(torch, parameter.dtype)
    numbers = torch.randn(parameter.shape, generator=generator)
    if dtype == torch.int8:
        return (numbers * 40).clamp(-127, 127).to(dtype)
    return (numbers.abs() * 0.003 + 0.002 if "scale" in parameter.name else numbers * 80).to(dtype)


def test_matrices_that_share_a_scale_are_rounded_again() -> None:
    module = quantized("modelopt_fp8", {"quant_algo": "FP8"}, "MergedColumnParallelLinear", (1, 1), 4)
    numbers = torch.tensor([[1.0, 9.0, 448.0, -16.0], [1.0, 9.0, 448.0, -16.0]])
    stored = {
        "weight": numbers.to(torch.float8_e4m3fn),
        "weight_scale": torch.tensor([0.5, 1.5]),
        "input_scale": torch.tensor([1.0, 2.0]),
    }

    linear = unpack(module, stored)

    # A third of the first row's numbers, in e4m3: 11/32, 3, 144 (149.3 in steps of 16), -5.5 (steps of 1/2).
    # Both rows with the scale of 1.5:
    assert linear.weight.tolist() == [[0.515625, 4.5, 216.0, -8.25], [1.5, 13.5, 672.0, -24.0]]
    assert linear.round_input is not None
    # The greatest input scale is that of both: 900 / 2 is beyond 448.
    assert linear.round_input(torch.tensor([[900.0, 3.0, 0.0, -2.0]])).tolist() == [[896.0, 3.0, 0.0, -2.0]]


@pytest.mark.parametrize(("group", "scales", "by_order"), [(64, 4, True), (-1, 1, False)])
def test_a_rank_goes_by_the_groups_of_all_ranks(group: int, scales: int, by_order: bool) -> None:
    config = {"quant_method": "gptq", "bits": 8, "group_size": group, "sym": True, "desc_act": True}
    module = quantized("gptq_marlin", config, "RowParallelLinear", (64,), 128, ranks=2)
    order = torch.arange(128).flip(0) // 64 + 2
    stored = Stored(
        {
            "qweight": torch.full((32, 64), 0x81818181 - 2**32).int(),  # every number is 129 - 128
            "g_idx": order.int(),
            "scales": torch.arange(1.0, scales + 1).bfloat16().unsqueeze(1).expand(scales, 64),
        }
    )

    weight = unpack(module, stored).weight

    assert ("g_idx" in stored.read) == by_order
    assert torch.equal(weight[0].float(), order + 1.0 if by_order else torch.ones(128))


def test_mxfp8_has_a_power_of_two_for_each_32_inputs() -> None:
    module = quantized("mxfp8", FP8 | {"quant_method": "mxfp8"}, inputs=64, outputs=(2,), capability=100)
    stored = {
        "weight": torch.full((2, 64), 1.5).to(torch.float8_e4m3fn),
        "weight_scale_inv": torch.tensor([[127, 130], [120, 255]], dtype=torch.uint8),
    }

    linear = unpack(module, stored)

    assert linear.weight[:, [0, 32]].tolist()[0] == [1.5, 12.0]
    assert float(linear.weight[1, 31]) == 1.5 / 128
    assert linear.weight[1, 32:].isnan().all()
    assert linear.round_input is not None


def test_mxfp8_of_a_dense_checkpoint() -> None:
    recorded = load_file(FIXTURES / "unpacked/mxfp8.safetensors")
    module = quantized("mxfp8", FP8 | {"quant_method": "mxfp8"}, inputs=128, outputs=(8,), capability=100)
    dense = Parameter("weight", (8, 128), "bfloat16")
    assert module.scheme is not None and module.scheme.block_size == (1, 32)
    online = Module("layer", module.module_class, (dense,), "layer", module.scheme, module.linear)

    linear = unpack(online, Stored({"weight": recorded["x"]}))

    assert torch.equal(linear.weight, recorded["rounded"])


def test_a_large_layer_is_unpacked_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    module = quantized("awq_marlin", {"quant_method": "awq", "bits": 4, "group_size": 64, "zero_point": True})
    generator = torch.Generator().manual_seed(6)
    stored = {
        p.name: torch.randint(-(2**31), 2**31, p.shape, generator=generator).int()
        if p.dtype == "int32"
        else torch.rand(p.shape, generator=generator).bfloat16()
        for p in module.parameters
    }
    whole = unpack(module, stored).weight

    monkeypatch.setattr(scaling, "PIECE", 1)

    assert torch.equal(unpack(module, stored).weight, whole)
