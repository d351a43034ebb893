"""What a kernel takes and what it does not, as it was met on an H200 or as the engine's source says."""

import pytest

from dflash_audit.diagnosis.kernel_limits import limit
from dflash_audit.quantization.compressed_tensors import read as compressed_tensors
from dflash_audit.quantization.config import QuantConfig, Surroundings
from dflash_audit.quantization.fp8 import read as fp8
from dflash_audit.quantization.modelopt import read_fp4
from dflash_audit.quantization.w8a8 import read_int8
from dflash_audit.tree import Linear, Module

H200, A100, L40S, B200, T4 = 90, 80, 89, 100, 75
AFTER_LOAD, FORWARD = "after the load", "at its first forward"


def layer(outputs: int, inputs: int, of_rank: int | None = None) -> Linear:
    """A linear of one matrix; `of_rank` are the inputs of one rank where they are split."""
    name = "ReplicatedLinear" if of_rank is None else "RowParallelLinear"
    return Linear(name, "x", inputs, (outputs,), of_rank or inputs, (outputs,))


def stage(config: QuantConfig, linear: Linear, capability: int = H200) -> str | None:
    scheme = config.linear(linear)
    found = limit(Module("x", linear.module_class, scheme.parameters, "x", scheme, linear), capability)
    return found.stage if found else None


def packed(bits: int = 4, group: int | None = None, **weights: object) -> QuantConfig:
    """compressed-tensors with packed integers."""
    strategy = {"strategy": "group", "group_size": group} if group else {"strategy": "channel"}
    quantized = {"num_bits": bits, "type": "int", "symmetric": True, "dynamic": False, **strategy, **weights}
    return ct("pack-quantized", quantized, None)


def ct(layout: str, weights: object, activations: object, capability: int = H200) -> QuantConfig:
    group = {"targets": ["Linear"], "weights": weights, "input_activations": activations}
    config = {"quant_method": "compressed-tensors", "format": layout, "config_groups": {"g": group}}
    return compressed_tensors(config, Surroundings({}, capability, {}))


EIGHT_BITS = {"num_bits": 8, "symmetric": True, "dynamic": False}
BY_TOKEN = {"num_bits": 8, "symmetric": True, "strategy": "token", "dynamic": True}


@pytest.mark.parametrize(
    ("outputs", "inputs", "expected"),
    [
        (32, 128, AFTER_LOAD),
        (96, 256, AFTER_LOAD),
        (72, 128, AFTER_LOAD),
        (128, 72, AFTER_LOAD),
        (128, 120, AFTER_LOAD),
        (64, 64, FORWARD),
        (64, 192, FORWARD),
        (192, 320, FORWARD),
        (128, 16, FORWARD),
        (128, 48, FORWARD),
        (64, 128, None),
        (128, 64, None),
        (192, 128, None),
        (320, 256, None),
        (256, 320, None),
    ],
)
def test_marlin_shapes(outputs: int, inputs: int, expected: str | None) -> None:
    assert stage(packed(bits=8), layer(outputs, inputs)) == expected


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize(
    ("group", "expected"),
    [(16, FORWARD), (32, None), (64, None), (128, None), (256, FORWARD), (512, None), (None, None)],
)
def test_marlin_groups(bits: int, group: int | None, expected: str | None) -> None:
    assert stage(packed(bits, group), layer(128, 512)) == expected


@pytest.mark.parametrize(("bits", "expected"), [(4, None), (8, FORWARD)])
@pytest.mark.parametrize("group", [32, 128, None])
def test_marlin_zero_points(bits: int, expected: str | None, group: int | None) -> None:
    assert stage(packed(bits, group, symmetric=False), layer(128, 512)) == expected


@pytest.mark.parametrize(("group", "expected"), [(64, None), (128, None), (512, FORWARD)])
@pytest.mark.parametrize("symmetric", [True, False])
def test_marlin_activation_order(group: int, expected: str | None, symmetric: bool) -> None:
    config = packed(4, group, actorder="group", symmetric=symmetric)
    assert stage(config, layer(128, 512)) == expected


def test_marlin_activation_order_over_ranks_has_no_zero_points() -> None:
    split = layer(128, 512, of_rank=256)
    assert stage(packed(4, 512, actorder="group"), split) is None
    assert stage(packed(4, 128, actorder="group", symmetric=False), split) == FORWARD


@pytest.mark.parametrize("strategy", ["channel", "tensor"])
@pytest.mark.parametrize(
    ("outputs", "inputs", "expected"),
    [
        (32, 128, AFTER_LOAD),
        (128, 24, AFTER_LOAD),
        (64, 64, FORWARD),
        (128, 48, FORWARD),
        (192, 192, FORWARD),
        (64, 128, None),
        (128, 64, None),
    ],
)
def test_fp8_weights_alone(strategy: str, outputs: int, inputs: int, expected: str | None) -> None:
    config = ct("float-quantized", {**EIGHT_BITS, "type": "float", "strategy": strategy}, None)
    assert stage(config, layer(outputs, inputs)) == expected


@pytest.mark.parametrize(("outputs", "inputs"), [(64, 72), (72, 64), (8, 64)])
def test_fp8_by_tensor_is_aligned_by_16(outputs: int, inputs: int) -> None:
    activations = {**BY_TOKEN, "type": "float"}
    by_tensor = ct("float-quantized", {**EIGHT_BITS, "type": "float", "strategy": "tensor"}, activations)
    by_row = ct("float-quantized", {**EIGHT_BITS, "type": "float", "strategy": "channel"}, activations)
    assert stage(by_tensor, layer(outputs, inputs)) == FORWARD
    assert stage(by_row, layer(outputs, inputs)) is None
    assert stage(by_tensor, layer(16, 16)) is None


def blocks(rows: int, columns: int) -> QuantConfig:
    config = {
        "quant_method": "fp8",
        "activation_scheme": "dynamic",
        "weight_block_size": [rows, columns],
    }
    return fp8(config, Surroundings({}, H200, {}))


@pytest.mark.parametrize(
    ("config", "outputs", "inputs", "on_h200", "on_a100"),
    [
        (blocks(128, 128), 128, 256, None, None),
        (blocks(128, 128), 72, 256, None, AFTER_LOAD),
        (blocks(128, 128), 128, 192, FORWARD, FORWARD),
        (blocks(128, 128), 128, 64, FORWARD, None),
        (blocks(64, 64), 128, 256, None, FORWARD),
        (blocks(48, 48), 96, 96, FORWARD, AFTER_LOAD),
    ],
)
def test_fp8_by_block(
    config: QuantConfig, outputs: int, inputs: int, on_h200: str | None, on_a100: str | None
) -> None:
    assert stage(config, layer(outputs, inputs), H200) == on_h200
    assert stage(config, layer(outputs, inputs), L40S) == on_h200
    assert stage(config, layer(outputs, inputs), A100) == on_a100


@pytest.mark.parametrize(
    ("outputs", "inputs", "capability", "expected"),
    [
        (72, 128, H200, None),
        (4, 128, H200, FORWARD),
        (128, 24, A100, FORWARD),
        (128, 128, T4, None),
        (128, 128, L40S, None),
        (128, 128, B200, FORWARD),
        (128, 128, 120, FORWARD),
    ],
)
def test_int8_on_both_sides(outputs: int, inputs: int, capability: int, expected: str | None) -> None:
    int8 = {**EIGHT_BITS, "type": "int"}
    by_row = ct("int-quantized", {**int8, "strategy": "channel"}, {**BY_TOKEN, "type": "int"})
    by_tensor = ct("int-quantized", {**int8, "strategy": "tensor"}, {**BY_TOKEN, "type": "int"})
    plain = read_int8({"quant_method": "w8a8_int8"}, Surroundings({}, H200, {}))
    for config in (by_row, plain):
        assert stage(config, layer(outputs, inputs), capability) == expected
    assert stage(by_tensor, layer(outputs, inputs), capability) == FORWARD


@pytest.mark.parametrize("algorithm", ["NVFP4", "W4A16_NVFP4"])
@pytest.mark.parametrize(("group", "expected"), [(16, None), (32, AFTER_LOAD)])
def test_nvfp4_pads_shapes_and_takes_groups_of_16(algorithm: str, group: int, expected: str | None) -> None:
    config = {"quant_method": "modelopt_fp4", "quant_algo": algorithm, "group_size": group, "ignore": []}
    quant = read_fp4(config, Surroundings({}, H200, {}))
    assert stage(quant, layer(72, 96)) == expected
    native = algorithm == "NVFP4"
    assert stage(quant, layer(72, 96), B200) == (None if native else expected)


def test_no_kernel_is_started_for_an_empty_layer() -> None:
    config = blocks(128, 128)
    assert stage(config, layer(0, 128)) is None
