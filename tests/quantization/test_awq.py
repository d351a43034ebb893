"""Expected parameters are those that SGLang 0.5.23 itself registers for these layers."""

from typing import Any

import pytest

from dflash_audit.quantization import awq
from dflash_audit.quantization.config import Surroundings
from dflash_audit.refusal import Refused
from dflash_audit.tree import Kind, Linear, Placement

CONFIG = {"bits": 4, "group_size": 64, "zero_point": True}
H200 = Surroundings(packed_modules_mapping={}, capability=90, draft={})

QKV = Linear("QKVParallelLinear", "layers.0.self_attn.qkv_proj", 256, (256, 128, 128), 256, (256, 128, 128))
DOWN = Linear("RowParallelLinear", "layers.0.mlp.down_proj", 256, (128,), 256, (128,))
HALF_OF_DOWN = Linear("RowParallelLinear", "layers.0.mlp.down_proj", 256, (128,), 128, (128,))


def fc(inputs: int, outputs: int) -> Linear:
    return Linear("ReplicatedLinear", "fc", inputs, (outputs,), inputs, (outputs,))


@pytest.mark.parametrize(
    ("changes", "layer", "name", "shapes"),
    [
        ({}, QKV, "AWQMarlinLinearScheme", [(256, 64), (4, 64), (4, 512)]),
        ({}, DOWN, "AWQMarlinLinearScheme", [(256, 16), (4, 16), (4, 128)]),
        ({}, HALF_OF_DOWN, "AWQMarlinLinearScheme", [(128, 16), (2, 16), (2, 128)]),
        ({"group_size": -1}, DOWN, "AWQMarlinLinearScheme", [(256, 16), (1, 16), (1, 128)]),
        ({"group_size": -1}, HALF_OF_DOWN, "AWQMarlinLinearScheme", [(128, 16), (0, 16), (0, 128)]),
        ({"group_size": -1.0}, DOWN, "AWQMarlinLinearScheme", [(256, 16), (1, 16), (1, 128)]),
        ({"zero_point": None}, DOWN, "AWQMarlinLinearScheme", [(256, 16), (4, 16), (4, 128)]),
        ({}, fc(192, 128), "AWQLinearScheme", [(192, 16), (3, 16), (3, 128)]),
        ({}, fc(256, 40), "AWQLinearScheme", [(256, 5), (4, 5), (4, 40)]),
        ({"q_group_size": 32}, fc(96, 128), "AWQLinearScheme", [(96, 16), (3, 16), (3, 128)]),
    ],
)
def test_parameters(changes: dict[str, Any], layer: Linear, name: str, shapes: list[tuple[int, ...]]) -> None:
    scheme = awq.read_marlin(CONFIG | changes, H200).linear(layer)

    assert (scheme.name, scheme.loader) == (name, "v2")
    assert [p.name for p in scheme.parameters] == ["qweight", "qzeros", "scales"]
    assert [p.dtype for p in scheme.parameters] == ["int32", "int32", "bfloat16"]
    assert [p.shape for p in scheme.parameters] == shapes
    assert [p.placement for p in scheme.parameters] == [
        Placement(Kind.PACKED, output_dim=1, input_dim=0, packed_dim=1, packed_factor=8),
        Placement(Kind.PACKED, output_dim=1, input_dim=0, packed_dim=1, packed_factor=8),
        Placement(Kind.GROUP_SCALE, output_dim=1, input_dim=0),
    ]


@pytest.mark.parametrize(
    "modules",
    [
        ["down_proj"],
        ["o_proj", "layers.0."],
        ["own"],  # any part of the name will do
        "xd",  # the letters of a string are entries
        {"mlp": 1},
    ],
)
def test_modules_left_alone(modules: Any) -> None:
    scheme = awq.read_marlin(CONFIG | {"modules_to_not_convert": modules}, H200).linear(DOWN)

    assert (scheme.name, scheme.loader) == ("UnquantizedLinearMethod", "v1")


@pytest.mark.parametrize("modules", [None, [], "", ["fc"], ["re:.*down_proj"], ["model.layers.0"]])
def test_modules_not_left_alone(modules: Any) -> None:
    scheme = awq.read_marlin(CONFIG | {"modules_to_not_convert": modules}, H200).linear(DOWN)

    assert scheme.name == "AWQMarlinLinearScheme"


@pytest.mark.parametrize(
    "changes",
    [
        {"bits": 8},
        {"bits": 3},
        {"bits": "4"},
        {"zero_point": False},
        {"group_size": 16},
        {"group_size": None},
    ],
)
def test_a_config_that_marlin_does_not_take(changes: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        awq.read_marlin(CONFIG | changes, H200)


@pytest.mark.parametrize("key", ["bits", "group_size", "zero_point"])
def test_a_missing_key_is_refused(key: str) -> None:
    config = {name: value for name, value in CONFIG.items() if name != key}

    with pytest.raises(Refused, match=key):
        awq.read_marlin(config, H200)


def test_a_card_before_ampere_is_refused() -> None:
    with pytest.raises(Refused, match="capability"):
        awq.read_marlin(CONFIG, Surroundings({}, 75, {}))


@pytest.mark.parametrize(
    ("changes", "layer"),
    [
        ({}, fc(256, 36)),  # 36 columns are no whole packed numbers
        ({}, fc(96, 128)),  # 96 rows are no whole groups
        ({}, Linear("RowParallelLinear", "o_proj", 128, (64,), 64, (64,))),  # fits Marlin on one rank only
        ({"w_bit": 8}, fc(192, 128)),
        ({"q_group_size": 0}, fc(192, 128)),
        ({"q_group_size": -64}, fc(192, 128)),
        ({"q_group_size": 64.0}, fc(192, 128)),
        ({"group_size": -1}, fc(192, 128)),
        ({"bits": 4.0}, DOWN),
        ({"group_size": 64.0}, DOWN),
        ({"modules_to_not_convert": 5}, DOWN),
        ({"modules_to_not_convert": [None]}, DOWN),
    ],
)
def test_refused_at_the_layer(changes: dict[str, Any], layer: Linear) -> None:
    config = awq.read_marlin(CONFIG | changes, H200)

    with pytest.raises(Refused):
        config.linear(layer)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (CONFIG, "bfloat16"),
        (CONFIG | {"zero_point": False, "group_size": 16}, "bfloat16"),
        (CONFIG | {"bits": 8}, "4-bit"),
        ({"bits": 4, "group_size": 64}, "zero_point"),
    ],
)
def test_plain_awq_is_never_served(config: dict[str, Any], reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        awq.read(config, H200)


def test_attention_and_embedding_stay_dense() -> None:
    config = awq.read_marlin(CONFIG, H200)

    assert config.attention() is None
    assert config.embedding("embed_tokens") is None


def test_the_layers_left_dense() -> None:
    config = awq.read_marlin(CONFIG | {"modules_to_not_convert": ["mlp", "fc", 5]}, H200)

    assert config.left_dense == ("mlp", "fc")
    assert config.names_looked_up("layers.0.mlp.gate_up_proj") == ("layers.0.mlp.gate_up_proj",)
    assert config.leaves_dense("mlp", "layers.0.mlp.down_proj")
    assert not config.leaves_dense("fc", "layers.0.mlp.down_proj")
