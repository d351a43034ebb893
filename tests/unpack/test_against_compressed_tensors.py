"""What compressed-tensors compresses is unpacked as it decompresses it."""

from typing import Any

import pytest
from unpack.layers import quantized

pytestmark = pytest.mark.warmup
torch = pytest.importorskip("torch")
pytest.importorskip("compressed_tensors")

from compressed_tensors.compressors import (  # noqa: E402
    NaiveQuantizationCompressor,
    NVFP4PackedCompressor,
    PackedQuantizationCompressor,
)
from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme  # noqa: E402
from compressed_tensors.quantization.utils import calculate_qparams, generate_gparam  # noqa: E402

from dflash_audit.warmup.unpack import unpack  # noqa: E402
from dflash_audit.warmup.unpack.rounding import nvfp4  # noqa: E402

OUTPUTS, INPUTS = 128, 256
WEIGHT = torch.randn((OUTPUTS, INPUTS), generator=torch.Generator().manual_seed(1)) * 0.1 + 0.05

COMPRESSORS = {
    "pack-quantized": PackedQuantizationCompressor,
    "nvfp4-pack-quantized": NVFP4PackedCompressor,
    "float-quantized": NaiveQuantizationCompressor,
    "int-quantized": NaiveQuantizationCompressor,
}
BY_TOKEN = {"type": "float", "strategy": "token", "dynamic": True}
FP4 = {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}


def grouped(weight: Any, args: Any) -> Any:
    """The weight with an axis for each group that has a scale, groups in the second last."""
    if args.strategy == "tensor":
        return weight.reshape(1, 1, -1)
    if args.strategy == "block":
        rows, columns = args.block_structure
        blocks = weight.unflatten(0, (-1, rows)).unflatten(2, (-1, columns))
        return blocks.transpose(1, 2).flatten(2)
    return weight.unflatten(1, (-1, args.group_size or INPUTS))


def compressed(layout: str, args: Any, order: Any = None) -> tuple[dict[str, Any], Any]:
    """What the layout stores of WEIGHT by `args`, and the weight that it stands for.

    `order` are the groups of the inputs; the library then takes them sorted by group.
    """
    weight = WEIGHT if order is None else WEIGHT[:, torch.argsort(order, stable=True)]
    groups = grouped(weight, args)
    extra = {}
    if args.strategy == "tensor_group":
        extra["global_scale"] = generate_gparam(weight.min(), weight.max())
    scale, zero = calculate_qparams(groups.amin(-1), groups.amax(-1), args, **extra)
    if args.strategy == "tensor":
        scale, zero = scale.reshape(1), zero.reshape(1)
    if layout == "pack-quantized":
        scale = scale.bfloat16()
    state = {"weight": weight, "weight_scale": scale, "weight_zero_point": zero}
    if extra:
        state["weight_global_scale"] = extra["global_scale"].reshape(1)
    scheme = QuantizationScheme(targets=["Linear"], weights=args)
    compressor = COMPRESSORS[layout]
    stored = compressor.compress(state, scheme)
    return stored, compressor.decompress(dict(stored), scheme)["weight"]


def module(layout: str, weights: dict[str, Any], inputs: dict[str, Any] | None, capability: int = 90) -> Any:
    group = {"targets": ["Linear"], "weights": weights, "input_activations": inputs}
    config = {"quant_method": "compressed-tensors", "format": layout, "config_groups": {"all": group}}
    return quantized("compressed-tensors", config, capability=capability)


@pytest.mark.parametrize(
    ("layout", "weights", "inputs", "scheme"),
    [
        ("pack-quantized", {"num_bits": 8, "strategy": "channel"}, None, "WNA16"),
        ("pack-quantized", {"num_bits": 8, "strategy": "group", "group_size": 128}, None, "WNA16"),
        ("pack-quantized", {"num_bits": 4, "strategy": "group", "group_size": 32}, None, "WNA16"),
        (
            "pack-quantized",
            {"num_bits": 4, "strategy": "group", "group_size": 64, "symmetric": False},
            None,
            "WNA16",
        ),
        ("pack-quantized", {"num_bits": 8, "strategy": "channel", "symmetric": False}, None, "WNA16"),
        ("float-quantized", {"type": "float", "strategy": "tensor"}, None, "W8A16Fp8"),
        ("float-quantized", {"type": "float", "strategy": "channel"}, None, "W8A16Fp8"),
        ("float-quantized", {"type": "float", "strategy": "tensor"}, BY_TOKEN, "W8A8Fp8"),
        ("float-quantized", {"type": "float", "strategy": "channel"}, BY_TOKEN, "W8A8Fp8"),
        (
            "float-quantized",
            {"type": "float", "strategy": "block", "block_structure": [128, 128]},
            {"type": "float", "strategy": "group", "group_size": 128, "dynamic": True},
            "W8A8Fp8",
        ),
        ("int-quantized", {"strategy": "channel"}, {"strategy": "token", "dynamic": True}, "W8A8Int8"),
        ("nvfp4-pack-quantized", FP4, None, "W4A16Fp4"),
    ],
)
def test_unpacks_what_the_library_decompresses(
    layout: str, weights: dict[str, Any], inputs: dict[str, Any] | None, scheme: str
) -> None:
    built = module(layout, weights, inputs)
    assert built.scheme.name == f"CompressedTensors{scheme}"
    stored, expected = compressed(layout, QuantizationArgs(**weights))

    found = unpack(built, stored).weight

    # A scale or a global scale in bfloat16, as Marlin holds it, and the weight itself: 2 ** -9 each.
    torch.testing.assert_close(found.float(), expected.float(), rtol=2**-7, atol=0)
    assert (found - WEIGHT).norm() < 0.15 * WEIGHT.norm()


def test_inputs_out_of_order_keep_their_groups() -> None:
    args = {"num_bits": 4, "strategy": "group", "group_size": 64}
    order = torch.randperm(INPUTS, generator=torch.Generator().manual_seed(2)) // 64
    stored, in_groups = compressed("pack-quantized", QuantizationArgs(**args), order)
    back = torch.argsort(torch.argsort(order, stable=True))
    packed = torch.stack([stored["weight_packed"] >> shift & 15 for shift in range(0, 32, 4)], dim=-1)
    numbers = packed.flatten(1)[:, back].unflatten(1, (-1, 8))
    words = (numbers << torch.arange(0, 32, 4)).sum(-1).int()
    stored |= {"weight_packed": words, "weight_g_idx": order.int()}

    found = unpack(module("pack-quantized", args | {"actorder": "group"}, None), stored).weight

    torch.testing.assert_close(found.float(), in_groups[:, back].float(), rtol=2**-8, atol=0)


def test_a_group_that_has_no_scale_is_poison_for_its_inputs_alone() -> None:
    args = {"num_bits": 4, "strategy": "group", "group_size": 64}
    stored, _ = compressed("pack-quantized", QuantizationArgs(**args))
    order = torch.arange(INPUTS) // 64
    order[7], order[9] = 0x5A5A5A5A, -3

    found = unpack(
        module("pack-quantized", args | {"actorder": "group"}, None), stored | {"weight_g_idx": order.int()}
    ).weight

    assert found.isnan().any(0).nonzero().flatten().tolist() == [7, 9]
    assert found[:, [7, 9]].isnan().all()


def test_fp4_for_weights_and_inputs() -> None:
    inputs = FP4 | {"dynamic": "local"}
    built = module("nvfp4-pack-quantized", FP4, inputs, capability=100)
    assert built.scheme.name == "CompressedTensorsW4A4Fp4"
    stored, expected = compressed("nvfp4-pack-quantized", QuantizationArgs(**FP4))
    x = torch.randn((5, INPUTS), generator=torch.Generator().manual_seed(3))
    stored["input_global_scale"] = generate_gparam(x.min(), x.max()).reshape(1)

    linear = unpack(built, stored)

    torch.testing.assert_close(linear.weight.float(), expected.float(), rtol=2**-7, atol=0)
    assert linear.round_input is not None
    torch.testing.assert_close(linear.round_input(x), nvfp4_of_the_library(x, stored["input_global_scale"]))


def test_the_fp4_of_zeros_is_zeros() -> None:
    assert nvfp4(torch.zeros(2, 32), torch.tensor(100.0)).tolist() == [[0.0] * 32] * 2


def nvfp4_of_the_library(x: Any, global_scale: Any) -> Any:
    from compressed_tensors.quantization.lifecycle.forward import fake_quantize

    args = QuantizationArgs(**FP4, scale_dtype=torch.float8_e4m3fn)
    groups = x.unflatten(1, (-1, 16))
    scale, zero = calculate_qparams(groups.amin(-1), groups.amax(-1), args, global_scale=global_scale)
    return fake_quantize(x, scale, zero, args, global_scale=global_scale)


@pytest.mark.parametrize(("divisors", "refused"), [([900.0] * 3, False), ([900.0, 901.0, 900.0], True)])
def test_weight_only_fp4_wants_one_global_scale(divisors: list[float], refused: bool) -> None:
    from dflash_audit.refusal import Refused

    group = {"targets": ["Linear"], "weights": FP4, "input_activations": None}
    config = {
        "quant_method": "compressed-tensors",
        "format": "nvfp4-pack-quantized",
        "config_groups": {"all": group},
    }
    built = quantized("compressed-tensors", config, "QKVParallelLinear", (64, 32, 32))
    stored, _ = compressed("nvfp4-pack-quantized", QuantizationArgs(**FP4))
    stored["weight_global_scale"] = torch.tensor(divisors)

    if refused:
        with pytest.raises(Refused, match="share one weight_global_scale"):
            unpack(built, stored)
    else:
        assert unpack(built, stored).weight.isfinite().all()


def test_poison_in_a_global_scale_is_no_refusal() -> None:
    group = {"targets": ["Linear"], "weights": FP4, "input_activations": None}
    config = {
        "quant_method": "compressed-tensors",
        "format": "nvfp4-pack-quantized",
        "config_groups": {"all": group},
    }
    built = quantized("compressed-tensors", config, "QKVParallelLinear", (64, 32, 32))
    stored, _ = compressed("nvfp4-pack-quantized", QuantizationArgs(**FP4))
    stored["weight_global_scale"] = torch.tensor([900.0, torch.nan, 900.0])

    assert unpack(built, stored).weight.isnan().all()
