"""Expected parameters are those that SGLang 0.5.23 itself registers for these layers."""

from typing import Any

import pytest

from dflash_audit.quantization import auto_round
from dflash_audit.quantization.config import Surroundings
from dflash_audit.refusal import Refused
from dflash_audit.tree import Kind, Linear

CONFIG = {"bits": 4, "group_size": 64, "sym": True}
AWQ = CONFIG | {"packing_format": "auto_round:auto_awq"}
FUSED = {"qkv_proj": ("q_proj", "k_proj", "v_proj")}
H200 = Surroundings(packed_modules_mapping=FUSED, capability=90, draft={})

QKV = Linear("QKVParallelLinear", "layers.0.self_attn.qkv_proj", 256, (256, 128, 128), 256, (256, 128, 128))


def fc(inputs: int = 512, outputs: int = 128) -> Linear:
    return Linear("ReplicatedLinear", "fc", inputs, (outputs,), inputs, (outputs,))


GPTQ_FC = [(64, 128), (512,), (8, 128), (8, 16)]
GPTQ_QKV = [(32, 512), (256,), (4, 512), (4, 64)]
AWQ_FC = [(512, 16), (8, 16), (8, 128)]


@pytest.mark.parametrize(
    ("config", "layer", "name", "shapes"),
    [
        (CONFIG, fc(), "GPTQMarlinLinearScheme", GPTQ_FC),
        (CONFIG, QKV, "GPTQMarlinLinearScheme", GPTQ_QKV),
        (
            CONFIG | {"bits": 8, "group_size": 128},
            fc(),
            "GPTQMarlinLinearScheme",
            [(128, 128), (512,), (4, 128), (4, 32)],
        ),
        (AWQ | {"backend": "gptq:marlin"}, fc(), "GPTQMarlinLinearScheme", GPTQ_FC),
        (AWQ | {"sym": False}, fc(), "AWQMarlinLinearScheme", AWQ_FC),
        (AWQ, fc(), "AWQLinearScheme", AWQ_FC),  # no Marlin kernel without zero points
        (AWQ | {"sym": False, "group_size": 256}, fc(), "AWQLinearScheme", [(512, 16), (2, 16), (2, 128)]),
        (
            AWQ | {"sym": False, "backend": "awq"},
            fc(192),
            "AWQLinearScheme",
            [(192, 16), (3, 16), (3, 128)],
        ),
        (CONFIG | {"block_name_to_quantize": "layers"}, fc(), "UnquantizedLinearMethod", [(128, 512)]),
        (CONFIG | {"block_name_to_quantize": "layers,fc"}, fc(), "GPTQMarlinLinearScheme", GPTQ_FC),
        (CONFIG | {"to_quant_block_names": ["layers"]}, fc(), "UnquantizedLinearMethod", [(128, 512)]),
        (
            CONFIG | {"block_name_to_quantize": None, "to_quant_block_names": ["layers"]},
            fc(),
            "GPTQMarlinLinearScheme",
            GPTQ_FC,
        ),
        (CONFIG | {"extra_config": {"fc": {"bits": 16}}}, fc(), "UnquantizedLinearMethod", [(128, 512)]),
        # A shard of a fused layer is never looked up.
        (
            CONFIG | {"extra_config": {"layers.0.self_attn.q_proj": {"bits": 16}}},
            QKV,
            "GPTQMarlinLinearScheme",
            GPTQ_QKV,
        ),
        # A key is the whole name, or a pattern for the whole name.
        (
            CONFIG | {"extra_config": {"layers.0.self_attn": {"bits": 16}, "f": {"bits": 16}}},
            QKV,
            "GPTQMarlinLinearScheme",
            GPTQ_QKV,
        ),
        (
            CONFIG | {"extra_config": {"(": {}, ".*qkv_proj": {"bits": 16}, ".*": {"bits": 8}}},
            QKV,
            "UnquantizedLinearMethod",
            [(512, 256)],
        ),
        # Outside the blocks an entry starts from dense: one group to a column.
        (
            CONFIG | {"block_name_to_quantize": ["layers"], "extra_config": {"f.?": {"bits": 4}}},
            fc(),
            "GPTQMarlinLinearScheme",
            [(64, 128), (512,), (1, 128), (1, 16)],
        ),
        # By its exact name it starts from the config.
        (
            CONFIG | {"block_name_to_quantize": ["layers"], "extra_config": {"fc": {}}},
            fc(),
            "GPTQMarlinLinearScheme",
            GPTQ_FC,
        ),
    ],
)
def test_parameters(config: dict[str, Any], layer: Linear, name: str, shapes: list[tuple[int, ...]]) -> None:
    scheme = auto_round.read(config, H200).linear(layer)

    assert scheme.name == name
    assert [p.shape for p in scheme.parameters] == shapes


def test_act_order() -> None:
    in_order, act_order = (
        auto_round.read(CONFIG | {"desc_act": desc_act}, H200).linear(fc()) for desc_act in (False, True)
    )

    assert [p.placement.kind for p in in_order.parameters[2:]] == [Kind.GROUP_SCALE, Kind.PACKED]
    assert [p.placement.kind for p in act_order.parameters[2:]] == [Kind.CHANNEL_SCALE, Kind.PACKED_COLUMN]
    assert (in_order.parameters[1].defaulted, act_order.parameters[1].defaulted) == (True, False)


@pytest.mark.parametrize(
    "changes",
    [
        {"bits": 5},
        {"bits": "4"},
        {"bits": 4.0},
        {"bits": []},
        {"data_type": "fp"},
        {"data_type": []},
        {"packing_format": "auto_round"},
        {"packing_format": None},
        {"backend": "exllama"},
        {"vllm_backend": "exllama"},
    ],
)
def test_a_value_outside_the_lists_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        auto_round.read(CONFIG | changes, H200)


@pytest.mark.parametrize("key", ["bits", "group_size", "sym"])
def test_a_missing_key_is_refused(key: str) -> None:
    with pytest.raises(Refused, match=key):
        auto_round.read({name: value for name, value in CONFIG.items() if name != key}, H200)


@pytest.mark.parametrize(
    ("config", "layer"),
    [
        (CONFIG | {"sym": False}, fc()),  # the other GPTQ kernel is gone
        (CONFIG | {"group_size": 16}, fc()),
        (CONFIG | {"backend": "gptq"}, fc()),
        (CONFIG | {"sym": False, "desc_act": True}, fc()),
        (CONFIG | {"sym": []}, fc()),
        (AWQ | {"bits": 8}, fc()),
        (AWQ, fc(256, 36)),
        (AWQ | {"sym": False}, fc(192)),  # Marlin takes the config, and not the shape
        (AWQ | {"group_size": None}, fc()),
        (CONFIG | {"extra_config": {"fc": {"bits": None}}}, fc()),
        (CONFIG | {"extra_config": {"fc": {"bits": 4.0}}}, fc()),
        (CONFIG | {"extra_config": {"fc": 16}}, fc()),
        (CONFIG | {"extra_config": ["fc"]}, fc()),
        (CONFIG | {"block_name_to_quantize": 5}, fc()),
        (CONFIG | {"block_name_to_quantize": [5]}, fc()),
    ],
)
def test_refused_at_the_layer(config: dict[str, Any], layer: Linear) -> None:
    accepted = auto_round.read(config, H200)

    with pytest.raises(Refused):
        accepted.linear(layer)


def test_attention_and_embedding_stay_dense() -> None:
    config = auto_round.read(CONFIG | {"sym": False}, H200)

    assert config.attention() is None
    assert config.embedding("embed_tokens") is None


@pytest.mark.parametrize(
    "config",
    [
        CONFIG | {"sym": False, "desc_act": True},
        CONFIG | {"sym": []},
        CONFIG | {"extra_config": {".*": {"bits": 5}}},
        AWQ | {"bits": 8},
    ],
)
def test_a_config_that_fails_on_layers_it_leaves_alone(config: dict[str, Any]) -> None:
    accepted = auto_round.read(config, H200)

    with pytest.raises(Refused):
        accepted.attention()
    with pytest.raises(Refused):
        accepted.embedding("embed_tokens")


def test_the_layers_left_dense() -> None:
    extra = {"fc": {"bits": 16}, ".*mlp.*": {"bits": 16}, "(": {"bits": 16}, "o_proj": {"bits": 8}, "a": None}
    config = auto_round.read(CONFIG | {"extra_config": extra}, H200)

    assert config.left_dense == ("fc", ".*mlp.*", "(")
    assert config.names_looked_up("layers.0.mlp.gate_up_proj") == ("layers.0.mlp.gate_up_proj",)
    assert config.leaves_dense("fc", "fc")
    assert config.leaves_dense(".*mlp.*", "layers.0.mlp.down_proj")
    assert not config.leaves_dense("fc", "layers.0.fc")
    assert not config.leaves_dense("(", "(x")
