"""FP8 configs: what they accept, what they leave dense, and the parameters of each layer.

Expected values were read off SGLang 0.5.23 (`fp8.py`, `w4afp8.py`) or off what it built
for the cases named beside them.
"""

from typing import Any

import pytest

from dflash_audit.quantization import fp8
from dflash_audit.quantization.config import Surroundings
from dflash_audit.refusal import Refused
from dflash_audit.tree import Kind, Linear, Placement, Scheme

STACKED = {"qkv_proj": ("q_proj", "k_proj", "v_proj"), "gate_up_proj": ("gate_proj", "up_proj")}
H200 = Surroundings({}, 90, {})
B200 = Surroundings({}, 100, {})

QKV = Linear("QKVParallelLinear", "layers.0.self_attn.qkv_proj", 128, (256, 128, 128), 128, (256, 128, 128))
O_PROJ = Linear("RowParallelLinear", "layers.0.self_attn.o_proj", 256, (128,), 256, (128,))
FC = Linear("ReplicatedLinear", "fc", 384, (128,), 384, (128,))

DYNAMIC = {"quant_method": "fp8", "activation_scheme": "dynamic"}
BLOCKS = {**DYNAMIC, "weight_block_size": [128, 128]}

WEIGHT = Placement(Kind.WEIGHT, output_dim=0, input_dim=1)
BLOCK_SCALE = Placement(Kind.BLOCK_SCALE, output_dim=0, input_dim=1)
TENSOR_SCALE = Placement(Kind.TENSOR_SCALE)


def parameters(scheme: Scheme | None) -> list[tuple[Any, ...]]:
    assert scheme is not None
    return [(p.name, p.shape, p.dtype, p.placement) for p in scheme.parameters]


def is_dense(config: dict[str, Any], layer: Linear, surroundings: Surroundings = H200) -> bool:
    return fp8.read(config, surroundings).linear(layer).name == "UnquantizedLinearMethod"


def named(layer: Linear, prefix: str) -> Linear:
    return Linear(
        layer.module_class,
        prefix,
        layer.input_size,
        layer.output_sizes,
        layer.input_size_per_partition,
        layer.output_partition_sizes,
    )


def test_blocks() -> None:
    # The case fp8-block-all.
    quantized = fp8.read(BLOCKS, H200)
    scheme = quantized.linear(QKV)
    assert (scheme.name, scheme.loader, scheme.block_size) == ("Fp8LinearMethod", "v2", (128, 128))
    assert parameters(scheme) == [
        ("weight", (512, 128), "float8_e4m3fn", WEIGHT),
        ("weight_scale_inv", (4, 1), "float32", BLOCK_SCALE),
    ]
    assert parameters(quantized.linear(O_PROJ))[1] == ("weight_scale_inv", (1, 2), "float32", BLOCK_SCALE)


def test_one_scale_a_shard() -> None:
    # The case fp8-dynamic-bf16-weights.
    scheme = fp8.read(DYNAMIC, H200).linear(QKV)
    assert parameters(scheme) == [
        ("weight", (512, 128), "float8_e4m3fn", WEIGHT),
        ("weight_scale", (3,), "float32", TENSOR_SCALE),
    ]
    assert scheme.block_size is None


def test_static_activations_get_a_scale_that_is_no_default() -> None:
    scheme = fp8.read({**DYNAMIC, "activation_scheme": "static"}, H200).linear(O_PROJ)
    assert [p.name for p in scheme.parameters] == ["weight", "weight_scale", "input_scale"]
    assert parameters(scheme)[2] == ("input_scale", (1,), "float32", TENSOR_SCALE)
    assert not scheme.parameters[2].defaulted


def test_a_replicated_linear_has_the_first_loader() -> None:
    assert fp8.read(BLOCKS, H200).linear(FC).loader == "v1"


def test_online() -> None:
    # The case inherit-fp8.
    scheme = fp8.online(H200).linear(QKV)
    assert (scheme.name, scheme.loader) == ("Fp8LinearMethod", "v2")
    assert parameters(scheme) == [("weight", (512, 128), "bfloat16", WEIGHT)]


def test_kv_cache_scales_have_a_right_value_of_their_own() -> None:
    scheme = fp8.read(BLOCKS, H200).attention()
    assert parameters(scheme) == [
        ("k_scale", (), "float32", Placement()),
        ("v_scale", (), "float32", Placement()),
    ]
    assert scheme is not None
    assert scheme.name == "Fp8KVCacheMethod"
    assert all(p.defaulted for p in scheme.parameters)
    assert fp8.read(BLOCKS, H200).embedding("embed_tokens") is None


def test_mxfp8() -> None:
    config = {"quant_method": "mxfp8", "activation_scheme": "dynamic", "weight_block_size": [1, 64]}
    scheme = fp8.read(config, B200).linear(QKV)
    exponents = Placement(Kind.BLOCK_SCALE, output_dim=0, input_dim=1, scale_per_row=True)
    assert scheme.block_size == (1, 32)
    assert parameters(scheme)[1] == ("weight_scale_inv", (512, 4), "uint8", exponents)


def test_mxfp8_online() -> None:
    scheme = fp8.mxfp8_online(B200).linear(QKV)
    assert scheme.block_size == (1, 32)
    assert parameters(scheme) == [("weight", (512, 128), "bfloat16", WEIGHT)]


def test_w4afp8_has_blocks_no_cache_and_no_ignore_list() -> None:
    quantized = fp8.read_w4afp8({"quant_method": "w4afp8", "ignored_layers": ["fc"]}, H200)
    scheme = quantized.linear(FC)
    assert scheme.block_size == (128, 128)
    assert parameters(scheme) == [
        ("weight", (128, 384), "float8_e4m3fn", WEIGHT),
        ("weight_scale_inv", (1, 3), "float32", BLOCK_SCALE),
    ]
    assert quantized.attention() is None
    assert fp8.w4afp8_online(H200).linear(FC) == scheme


def test_a_method_in_upper_case_holds_dense_weights() -> None:
    config = {"quant_method": "FP8", "activation_scheme": "dynamic"}
    assert parameters(fp8.read(config, H200).linear(O_PROJ)) == [("weight", (128, 256), "bfloat16", WEIGHT)]


@pytest.mark.parametrize(
    ("ignored", "prefix", "dense"),
    [
        (["fc"], "fc", True),
        (["fc"], "model.fc", True),
        (["model.fc"], "fc", True),
        (["fc."], "fc", True),
        (["self_attn.o_proj"], "layers.0.self_attn.o_proj", True),
        (["layers.0"], "layers.0.self_attn.o_proj", True),
        (["layers.1"], "layers.10.self_attn.o_proj", False),
        (["mlp.gate"], "layers.0.mlp.gate_proj", False),
        (["re:.*o_proj"], "layers.0.self_attn.o_proj", False),
        (["*o_proj"], "layers.0.self_attn.o_proj", False),
        (["self_attn.o_proj"], "o_proj", False),
        ("fc", "layers.f.o_proj", True),
        ({"fc": 1}, "fc", True),
        ([], "fc", False),
        (None, "fc", False),
    ],
)
def test_ignored(ignored: Any, prefix: str, dense: bool) -> None:
    assert is_dense({**BLOCKS, "ignored_layers": ignored}, named(FC, prefix)) is dense
    assert is_dense({**BLOCKS, "modules_to_not_convert": ignored}, named(FC, prefix)) is dense


def test_the_first_key_that_is_there_counts() -> None:
    assert not is_dense({**BLOCKS, "ignored_layers": None, "modules_to_not_convert": ["fc"]}, FC)
    assert not is_dense({**BLOCKS, "ignored_layers": [], "modules_to_not_convert": ["fc"]}, FC)


def test_entries_one_by_one() -> None:
    quantized = fp8.read({**BLOCKS, "ignored_layers": ["model.fc", "q_proj"]}, H200)
    assert quantized.left_dense == ("model.fc", "q_proj")
    assert quantized.leaves_dense("model.fc", "fc")
    assert quantized.leaves_dense("q_proj", "layers.0.self_attn.q_proj")
    assert not quantized.leaves_dense("q_proj", "layers.0.self_attn.qkv_proj")
    assert fp8.online(H200).left_dense == ()


@pytest.mark.parametrize("mapping", [{}, STACKED])
def test_a_fused_module_is_looked_up_by_its_shards(mapping: dict[str, tuple[str, ...]]) -> None:
    # The case fp8-block-qkv-kept, whose bare names the release does not meet.
    surroundings = Surroundings(mapping, 90, {})
    shards = [f"self_attn.{shard}" for shard in STACKED["qkv_proj"]]
    assert is_dense({**BLOCKS, "ignored_layers": shards}, QKV, surroundings)
    assert not is_dense({**BLOCKS, "ignored_layers": shards}, named(QKV, "qkv_proj"), surroundings)
    assert not is_dense({**BLOCKS, "ignored_layers": ["qkv_proj"]}, QKV, surroundings)
    with pytest.raises(Refused, match="some but not all shards"):
        is_dense({**BLOCKS, "ignored_layers": ["q_proj"]}, QKV, surroundings)


def test_sizes_that_do_not_fit_the_blocks() -> None:
    quantized = fp8.read(BLOCKS, H200)
    # One matrix may end inside a block; fused ones may not, however many ranks there are.
    assert parameters(quantized.linear(Linear("RowParallelLinear", "x", 100, (72,), 100, (72,))))[1][1] == (
        1,
        1,
    )
    with pytest.raises(Refused, match="output_partition_size = 72"):
        quantized.linear(Linear("MergedColumnParallelLinear", "x", 128, (72, 72), 128, (72, 72)))
    with pytest.raises(Refused, match="input_size_per_partition = 64"):
        quantized.linear(Linear("RowParallelLinear", "x", 128, (128,), 64, (128,)))
    with pytest.raises(Refused, match="output_partition_size = 64"):
        quantized.linear(Linear("ColumnParallelLinear", "x", 128, (128,), 128, (64,)))


@pytest.mark.parametrize("block", [[0, 128], [128, 0], [128, 128.0], ["128", "128"], "ab", {"a": 1, "b": 2}])
def test_blocks_that_fail_at_the_first_quantized_layer(block: Any) -> None:
    quantized = fp8.read({**BLOCKS, "weight_block_size": block, "ignored_layers": ["fc"]}, H200)
    assert quantized.linear(FC).name == "UnquantizedLinearMethod"
    with pytest.raises(Refused):
        quantized.linear(O_PROJ)


@pytest.mark.parametrize(
    "config",
    [
        {"activation_scheme": "dynamic"},
        {"quant_method": "fp8"},
        {"quant_method": None, "activation_scheme": "dynamic"},
        {**DYNAMIC, "activation_scheme": "per-token"},
        {**DYNAMIC, "activation_scheme": None},
        {**BLOCKS, "weight_block_size": [128]},
        {**BLOCKS, "weight_block_size": 128},
        {**BLOCKS, "weight_block_size": False},
        {**BLOCKS, "activation_scheme": "static"},
        {**BLOCKS, "quant_method": "FP8"},
        {**BLOCKS, "ignored_layers": 5},
        {**BLOCKS, "ignored_layers": ["fc", 5]},
        {**DYNAMIC, "quant_method": "mxfp8", "activation_scheme": "static"},
    ],
)
def test_refused(config: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        fp8.read(config, B200)


def test_cards_that_are_too_old() -> None:
    ampere = Surroundings({}, 80, {})
    fp8.read(DYNAMIC, ampere)
    fp8.online(ampere)
    with pytest.raises(Refused, match="compute capability 80"):
        fp8.read(DYNAMIC, Surroundings({}, 75, {}))
    with pytest.raises(Refused, match="compute capability 100"):
        fp8.read({**DYNAMIC, "quant_method": "mxfp8"}, H200)
    with pytest.raises(Refused, match="compute capability 100"):
        fp8.mxfp8_online(H200)
    with pytest.raises(Refused, match="compute capability 90"):
        fp8.w4afp8_online(ampere)
