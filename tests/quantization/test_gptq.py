"""Expected parameters are those that SGLang 0.5.23 itself registers for these layers."""

from typing import Any

import pytest

from dflash_audit.quantization import gptq
from dflash_audit.quantization.config import Surroundings
from dflash_audit.refusal import Refused
from dflash_audit.tree import Kind, Linear, Placement

CONFIG = {"bits": 4, "group_size": 64, "desc_act": False, "sym": True}
H200 = Surroundings(packed_modules_mapping={}, capability=90, draft={})

QKV = Linear("QKVParallelLinear", "layers.0.self_attn.qkv_proj", 256, (256, 128, 128), 256, (256, 128, 128))
DOWN = Linear("RowParallelLinear", "layers.0.mlp.down_proj", 256, (128,), 256, (128,))
HALF_OF_DOWN = Linear("RowParallelLinear", "layers.0.mlp.down_proj", 256, (128,), 128, (128,))
ODD = Linear("ReplicatedLinear", "fc", 40, (36,), 40, (36,))

WHOLE = [Kind.PACKED, Kind.ROW, Kind.GROUP_SCALE, Kind.PACKED]
REPEATED = [Kind.PACKED, Kind.ROW, Kind.CHANNEL_SCALE, Kind.PACKED_COLUMN]


@pytest.mark.parametrize(
    ("changes", "layer", "shapes", "kinds"),
    [
        ({}, QKV, [(32, 512), (256,), (4, 512), (4, 64)], WHOLE),
        ({}, DOWN, [(32, 128), (256,), (4, 128), (4, 16)], WHOLE),
        ({}, HALF_OF_DOWN, [(16, 128), (128,), (2, 128), (2, 16)], WHOLE),
        ({}, ODD, [(5, 36), (40,), (0, 36), (0, 4)], WHOLE),
        ({"bits": 8, "group_size": -1}, DOWN, [(64, 128), (256,), (1, 128), (1, 32)], WHOLE),
        ({"bits": 8, "group_size": -1}, HALF_OF_DOWN, [(32, 128), (128,), (1, 128), (1, 32)], REPEATED),
        ({"desc_act": True}, DOWN, [(32, 128), (256,), (4, 128), (4, 16)], REPEATED),
        ({"desc_act": True}, HALF_OF_DOWN, [(16, 128), (128,), (4, 128), (4, 16)], REPEATED),
        ({"desc_act": True, "group_size": -1}, DOWN, [(32, 128), (256,), (1, 128), (1, 16)], WHOLE),
        ({"group_size": -1.0}, DOWN, [(32, 128), (256,), (1, 128), (1, 16)], WHOLE),
        (
            {"dynamic": {"+:.*qkv_proj": {"bits": 8, "group_size": 128}}},
            QKV,
            [(64, 512), (256,), (2, 512), (2, 128)],
            WHOLE,
        ),
        (
            {"dynamic": {".*down.*": {"desc_act": True}}},
            HALF_OF_DOWN,
            [(16, 128), (128,), (4, 128), (4, 16)],
            REPEATED,
        ),
    ],
)
def test_parameters(
    changes: dict[str, Any], layer: Linear, shapes: list[tuple[int, ...]], kinds: list[Kind]
) -> None:
    scheme = gptq.read(CONFIG | changes, H200).linear(layer)

    assert (scheme.name, scheme.loader) == ("GPTQMarlinLinearScheme", "v2")
    assert [p.name for p in scheme.parameters] == ["qweight", "g_idx", "scales", "qzeros"]
    assert [p.dtype for p in scheme.parameters] == ["int32", "int32", "bfloat16", "int32"]
    assert [p.shape for p in scheme.parameters] == shapes
    assert [p.placement.kind for p in scheme.parameters] == kinds


def test_placements() -> None:
    scheme = gptq.read(CONFIG, H200).linear(DOWN)

    assert [p.placement for p in scheme.parameters] == [
        Placement(Kind.PACKED, output_dim=1, input_dim=0, packed_dim=0, packed_factor=8),
        Placement(Kind.ROW, input_dim=0),
        Placement(Kind.GROUP_SCALE, output_dim=1, input_dim=0),
        Placement(Kind.PACKED, output_dim=1, input_dim=0, packed_dim=1, packed_factor=8),
    ]


def test_placements_of_repeated_scales() -> None:
    scheme = gptq.read(CONFIG | {"desc_act": True, "bits": 8}, H200).linear(DOWN)

    assert [p.placement for p in scheme.parameters[2:]] == [
        Placement(Kind.CHANNEL_SCALE, output_dim=1),
        Placement(Kind.PACKED_COLUMN, output_dim=1, packed_dim=1, packed_factor=4),
    ]


@pytest.mark.parametrize(
    ("changes", "defaulted"),
    [
        ({}, True),
        ({"desc_act": None}, True),
        ({"desc_act": True}, False),
        ({"desc_act": True, "group_size": -1}, False),
        ({"dynamic": {".*": {"desc_act": True}}}, False),
    ],
)
def test_g_idx_has_a_right_value_without_act_order_only(changes: dict[str, Any], defaulted: bool) -> None:
    scheme = gptq.read(CONFIG | changes, H200).linear(DOWN)

    assert [p.defaulted for p in scheme.parameters] == [False, defaulted, False, False]


@pytest.mark.parametrize(
    "dynamic",
    [
        {"-:.*down_proj": {}},
        {"-:layers\\.0": {}, "+:.*": {"bits": 8}},
        {".*": False},
    ],
)
def test_a_rule_leaves_a_layer_dense(dynamic: dict[str, Any]) -> None:
    scheme = gptq.read(CONFIG | {"dynamic": dynamic}, H200).linear(DOWN)

    assert (scheme.name, scheme.loader) == ("UnquantizedLinearMethod", "v1")
    assert [(p.name, p.shape) for p in scheme.parameters] == [("weight", (128, 256))]


@pytest.mark.parametrize(
    "dynamic",
    [
        None,
        {"-:down_proj": {}},  # a pattern matches at the start
        {"+:.*": {"bits": "8"}},  # a value of another type is passed over
        {"+:.*": {"group_size": 128.0, "desc_act": 1}},
        {"+:.*": {}, "-:.*": {}},  # the first rule counts
    ],
)
def test_a_rule_changes_nothing(dynamic: dict[str, Any] | None) -> None:
    assert gptq.read(CONFIG | {"dynamic": dynamic}, H200).linear(DOWN) == gptq.read(CONFIG, H200).linear(DOWN)


@pytest.mark.parametrize("key", ["bits", "group_size", "desc_act", "sym"])
def test_a_missing_key_is_refused(key: str) -> None:
    with pytest.raises(Refused, match=key):
        gptq.read({name: value for name, value in CONFIG.items() if name != key}, H200)


@pytest.mark.parametrize(
    "changes", [{"bits": 2}, {"bits": 3}, {"bits": "4"}, {"bits": 0}, {"sym": False}, {"sym": []}]
)
def test_no_marlin_type(changes: dict[str, Any]) -> None:
    with pytest.raises(Refused, match="Unsupported quantization config"):
        gptq.read(CONFIG | changes, H200)


def test_a_card_before_ampere_is_refused() -> None:
    with pytest.raises(Refused, match="capability"):
        gptq.read(CONFIG, Surroundings({}, 75, {}))


@pytest.mark.parametrize(
    "changes",
    [
        {"group_size": 16},
        {"group_size": 256},
        {"group_size": None},
        {"group_size": 128.0},
        {"bits": 4.0},
        {"dynamic": []},
        {"dynamic": {"(": {}}},
        {"dynamic": {".*": None}},
        {"dynamic": {".*": {"bits": 2}}},
        {"dynamic": {".*": {"bits": True}}},
        {"dynamic": {".*": {"sym": False}}},
        {"dynamic": {".*": {"group_size": 16}}},
    ],
)
def test_refused_at_the_layer(changes: dict[str, Any]) -> None:
    config = gptq.read(CONFIG | changes, H200)

    with pytest.raises(Refused):
        config.linear(DOWN)


def test_attention_and_embedding_stay_dense() -> None:
    config = gptq.read(CONFIG | {"dynamic": []}, H200)

    assert config.attention() is None
    assert config.embedding("embed_tokens") is None


def test_the_layers_left_dense() -> None:
    dynamic = {"-:.*down_proj": {}, "+:.*": {"bits": 8}, "-:(": {}}
    config = gptq.read(CONFIG | {"dynamic": dynamic}, H200)

    assert config.left_dense == ("-:.*down_proj", "-:(")
    assert config.names_looked_up("layers.0.mlp.gate_up_proj") == ("layers.0.mlp.gate_up_proj",)
    assert config.leaves_dense("-:.*down_proj", "layers.0.mlp.down_proj")
    assert not config.leaves_dense("-:.*down_proj", "layers.0.self_attn.o_proj")
