"""ModelOpt configs: what they accept, what they leave dense, and the parameters of each layer.

Expected values were read off SGLang 0.5.23 (`modelopt_quant.py`, `nvfp4_online.py`) or off
what it built for the cases named beside them.
"""

from typing import Any

import pytest

from dflash_audit.quantization import modelopt
from dflash_audit.quantization.config import Surroundings
from dflash_audit.refusal import NotModelled, Refused
from dflash_audit.tree import Kind, Linear, Placement, Scheme

STACKED = {"qkv_proj": ("q_proj", "k_proj", "v_proj"), "gate_up_proj": ("gate_proj", "up_proj")}
RELEASE = Surroundings({}, 90, {})
NEXT = Surroundings(STACKED, 90, {})
B200 = Surroundings(STACKED, 100, {})

QKV = Linear("QKVParallelLinear", "layers.0.self_attn.qkv_proj", 128, (256, 128, 128), 128, (256, 128, 128))
BARE_QKV = Linear("QKVParallelLinear", "qkv_proj", 128, (256, 128, 128), 128, (256, 128, 128))
O_PROJ = Linear("RowParallelLinear", "layers.0.self_attn.o_proj", 256, (128,), 256, (128,))
FC = Linear("ReplicatedLinear", "fc", 384, (128,), 384, (128,))

FP8 = {"quant_method": "modelopt_fp8", "quant_algo": "FP8"}
NVFP4 = {"quant_method": "modelopt_fp4", "quant_algo": "NVFP4", "group_size": 16, "ignore": []}

WEIGHT = Placement(Kind.WEIGHT, output_dim=0, input_dim=1)
SCALARS = Placement(Kind.TENSOR_SCALE, scalar_per_shard=True)


def parameters(scheme: Scheme | None) -> list[tuple[Any, ...]]:
    assert scheme is not None
    return [(p.name, p.shape, p.dtype, p.placement) for p in scheme.parameters]


def scheme_of(config: dict[str, Any], layer: Linear, surroundings: Surroundings = RELEASE) -> str:
    return modelopt.read_fp8(config, surroundings).linear(layer).name


def test_fp8() -> None:
    scheme = modelopt.read_fp8(FP8, RELEASE).linear(QKV)
    assert (scheme.name, scheme.loader, scheme.block_size) == ("ModelOptFp8LinearMethod", "v2", None)
    assert parameters(scheme) == [
        ("weight", (512, 128), "float8_e4m3fn", WEIGHT),
        ("weight_scale", (3,), "float32", SCALARS),
        ("input_scale", (3,), "float32", SCALARS),
    ]
    assert not any(p.defaulted for p in scheme.parameters)
    assert modelopt.read_fp8(FP8, RELEASE).linear(FC).loader == "v1"


def test_nvfp4() -> None:
    # The case modelopt-nvfp4-hfquant.
    nested = {"quantization": {"quant_algo": "NVFP4", "group_size": 16, "exclude_modules": ["fc"]}}
    quantized = modelopt.read_fp4(nested, RELEASE)
    scheme = quantized.linear(QKV)
    assert (scheme.name, scheme.loader) == ("ModelOptFp4LinearMethod", "v2")
    assert parameters(scheme) == [
        ("weight", (512, 64), "uint8", WEIGHT),
        ("input_scale", (3,), "float32", SCALARS),
        ("weight_scale_2", (3,), "float32", SCALARS),
        ("weight_scale", (512, 8), "float8_e4m3fn", WEIGHT),
    ]
    assert [p.name for p in scheme.parameters if p.defaulted] == ["input_scale"]
    assert quantized.linear(FC).name == "UnquantizedLinearMethod"
    assert modelopt.read_fp4(NVFP4, RELEASE).linear(FC).loader == "v1"


def test_nvfp4_weights_alone_have_the_first_loader() -> None:
    # The case nemotron35-nvfp4.
    config = {**NVFP4, "quant_algo": "W4A16_NVFP4", "ignore": ["embed_tokens", "lm_head"]}
    scheme = modelopt.read_fp4(config, RELEASE).linear(QKV)
    assert (scheme.name, scheme.loader) == ("ModelOptNvFp4A16LinearMethod", "v1")
    assert parameters(scheme) == [
        ("weight", (512, 64), "uint8", WEIGHT),
        ("weight_scale_2", (3,), "float32", SCALARS),
        ("weight_scale", (512, 8), "float8_e4m3fn", WEIGHT),
        ("input_scale", (3,), "float32", SCALARS),
    ]
    assert [p.name for p in scheme.parameters if p.defaulted] == ["input_scale"]


def test_nvfp4_awq_scales_its_inputs() -> None:
    scheme = modelopt.read_fp4({**NVFP4, "quant_algo": "NVFP4_AWQ"}, RELEASE).linear(O_PROJ)
    names = ["weight", "input_scale", "pre_quant_scale", "weight_scale_2", "weight_scale"]
    assert [p.name for p in scheme.parameters] == names
    row = Placement(Kind.WEIGHT, output_dim=0, input_dim=0)
    assert parameters(scheme)[2] == ("pre_quant_scale", (256,), "bfloat16", row)
    assert not scheme.parameters[2].defaulted


@pytest.mark.parametrize(
    ("config", "scales"),
    [
        (FP8, False),
        ({**FP8, "kv_cache_quant_algo": "FP8"}, True),
        ({**FP8, "kv_cache_scheme": {"type": "float", "num_bits": 8}}, True),
        ({**FP8, "kv_cache_scheme": {"type": "int", "num_bits": 8}, "kv_cache_quant_algo": "FP8"}, False),
        ({"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}, True),
        ({"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": None}}, False),
    ],
)
def test_kv_cache_of_fp8(config: dict[str, Any], scales: bool) -> None:
    scheme = modelopt.read_fp8(config, RELEASE).attention()
    assert (scheme is not None) is scales
    if scheme is not None:
        assert scheme.name == "ModelOptFp8KVCacheMethod"
        assert [(p.name, p.shape, p.defaulted) for p in scheme.parameters] == [
            ("k_scale", (), True),
            ("v_scale", (), True),
        ]


def test_kv_cache_of_nvfp4_has_scales_unasked() -> None:
    quantized = modelopt.read_fp4(NVFP4, RELEASE)
    assert [p[0] for p in parameters(quantized.attention())] == ["k_scale", "v_scale"]
    assert quantized.embedding("embed_tokens") is None


@pytest.mark.parametrize(
    ("excluded", "layer", "dense"),
    [
        (["fc"], FC, True),
        (["*c"], FC, True),
        (["f"], FC, False),
        (["lm_head"], FC, False),
        (["layers.0*"], O_PROJ, True),
        (["layers.*.o_proj"], O_PROJ, True),
        (["layers.*.mlp"], O_PROJ, False),
        (["self_attn"], O_PROJ, True),
        (["layers"], O_PROJ, True),
        (["self_*"], O_PROJ, True),
        (["self_attn.*"], O_PROJ, False),
        (["*self_attn*"], QKV, True),
        (["*self_attn*"], BARE_QKV, False),
        (["*qkv_proj"], BARE_QKV, True),
        (["q_proj", "k_proj", "v_proj"], BARE_QKV, True),
        (["*q_proj"], BARE_QKV, False),
        (["*q_proj", "*k_proj"], QKV, False),
        (["*v_proj"], QKV, True),
        ([r"layers\.\d\.self_attn\.o_proj"], O_PROJ, False),
        (["[of]_proj"], O_PROJ, True),
        ("fc", FC, False),
        ("*", FC, True),
        ({"fc": 1}, FC, True),
        (None, FC, False),
    ],
)
def test_excluded(excluded: Any, layer: Linear, dense: bool) -> None:
    expected = "UnquantizedLinearMethod" if dense else "ModelOptFp8LinearMethod"
    assert scheme_of({**FP8, "ignore": excluded}, layer) == expected
    nested = {"quantization": {"quant_algo": "FP8", "exclude_modules": excluded}}
    assert scheme_of(nested, layer) == expected


def test_entries_one_by_one() -> None:
    quantized = modelopt.read_fp4({**NVFP4, "ignore": ["*fc", "self_attn.q_proj"]}, RELEASE)
    assert quantized.left_dense == ("*fc", "self_attn.q_proj")
    assert quantized.leaves_dense("*fc", "model.fc")
    assert quantized.leaves_dense("self_attn.q_proj", "layers.0.self_attn.q_proj")
    assert not quantized.leaves_dense("self_attn.q_proj", "q_proj")
    online = modelopt.read_nvfp4_online({"ignore": "model.fc"}, B200)
    assert online.left_dense == ("model.fc",)
    assert online.leaves_dense("model.fc", "fc")


def test_the_flat_form_has_no_exclude_modules_for_fp8() -> None:
    assert scheme_of({**FP8, "exclude_modules": ["fc"]}, FC) == "ModelOptFp8LinearMethod"
    config = {"quant_algo": "NVFP4", "group_size": 16, "exclude_modules": ["fc"]}
    assert modelopt.read_fp4(config, RELEASE).linear(FC).name == "UnquantizedLinearMethod"


@pytest.mark.parametrize("surroundings", [RELEASE, NEXT])
@pytest.mark.parametrize("excluded", [["q_proj"], ["(", "q_proj"], 5, [5], ["("]])
def test_exclusions_that_fail_at_the_first_layer(excluded: Any, surroundings: Surroundings) -> None:
    quantized = modelopt.read_fp8({**FP8, "ignore": excluded}, surroundings)
    with pytest.raises(Refused):
        quantized.linear(QKV)


def test_a_match_ends_the_search() -> None:
    assert scheme_of({**FP8, "ignore": ["*c", "("]}, FC) == "UnquantizedLinearMethod"
    assert scheme_of({**FP8, "ignore": ["(", "fc"]}, FC) == "UnquantizedLinearMethod"


def test_a_pattern_in_another_dialect_is_not_modelled() -> None:
    with pytest.raises(NotModelled):
        scheme_of({**FP8, "ignore": [r"\p{L}+"]}, FC)


@pytest.mark.parametrize(
    ("config", "columns"),
    [
        (NVFP4, 16),
        ({"quant_algo": "NVFP4", "group_size": 32}, 8),
        ({"quant_algo": "NVFP4"}, 16),
        ({"quant_algo": "NVFP4", "config_groups": {"g": {"weights": {"group_size": 64}}}}, 4),
        ({"quant_algo": "NVFP4", "config_groups": {"g": {"group_size": 64}}}, 16),
        ({"quantization": {"quant_algo": "NVFP4", "group_size": 32}}, 8),
        ({"quantization": {"quant_algo": "NVFP4"}, "config_groups": {"g": {"group_size": 64}}}, 4),
        ({"quantization": {"quant_algo": "NVFP4"}, "config_groups": {"g": {"w": {"group_size": 64}}}}, 4),
    ],
)
def test_group_size(config: dict[str, Any], columns: int) -> None:
    scheme = modelopt.read_fp4(config, RELEASE).linear(O_PROJ)
    assert {p.name: p.shape for p in scheme.parameters}["weight_scale"] == (128, columns)


@pytest.mark.parametrize("size", [0, -16, "16", 16.0, [16]])
def test_group_sizes_that_fail_at_the_first_layer(size: Any) -> None:
    quantized = modelopt.read_fp4({**NVFP4, "group_size": size, "ignore": ["fc"]}, RELEASE)
    assert quantized.linear(FC).name == "UnquantizedLinearMethod"
    with pytest.raises(Refused):
        quantized.linear(O_PROJ)


def test_nvfp4_wants_sixteens() -> None:
    odd = Linear("RowParallelLinear", "o_proj", 48, (128,), 24, (128,))
    for algorithm in ("NVFP4", "W4A16_NVFP4"):
        with pytest.raises(Refused, match="multiples of 16"):
            modelopt.read_fp4({**NVFP4, "quant_algo": algorithm}, RELEASE).linear(odd)


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"quant_algo": "fp8"},
        {"quant_algo": "NVFP4"},
        {"quant_algo": 8},
        {"quantization": {}},
        {"quantization": []},
        {"quantization": {"quant_algo": "MXFP8"}},
    ],
)
def test_refused_as_fp8(config: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        modelopt.read_fp8(config, RELEASE)


@pytest.mark.parametrize(
    "config",
    [
        {},
        {**NVFP4, "quant_algo": "nvfp4"},
        {**NVFP4, "quant_algo": "W4A8_NVFP4"},
        {**NVFP4, "quant_algo": ["NVFP4"]},
        {**NVFP4, "ignore": None},
        {"quant_algo": "FP8", "ignore": []},
        {"quant_algo": "NVFP4", "config_groups": {"g": {"weights": None}}},
        {"quant_algo": "NVFP4", "config_groups": [1]},
        {"quantization": {"quant_algo": "NVFP4"}},
        {"quantization": {"quant_algo": "NVFP4", "group_size": [16]}},
        {"quantization": {"quant_algo": "NVFP4", "group_size": 16}, "group_size": 32},
        {"quantization": {"quant_algo": "NVFP4", "group_size": 16, "exclude_modules": None}},
        {"quantization": {"group_size": 16}},
    ],
)
def test_refused_as_fp4(config: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        modelopt.read_fp4(config, RELEASE)


@pytest.mark.parametrize(
    "quantized",
    [
        modelopt.fp4_online(RELEASE),
        modelopt.nvfp4_online(B200),
        modelopt.read_fp4({"quant_algo": "FP8", "group_size": 16, "ignore": []}, RELEASE),
        modelopt.read_nvfp4_online({"quant_method": "modelopt"}, B200),
    ],
)
def test_linears_are_left_alone_where_only_experts_become_nvfp4(quantized: Any) -> None:
    assert quantized.linear(QKV).name == "UnquantizedLinearMethod"
    assert quantized.attention() is None


def test_fp8_weights_under_nvfp4_experts_stay_fp8() -> None:
    config = {"quant_method": "fp8", "weight_block_size": [128, 128], "modules_to_not_convert": "fc"}
    quantized = modelopt.read_fp4(config, RELEASE)
    scheme = quantized.linear(QKV)
    assert (scheme.name, scheme.block_size) == ("Fp8LinearMethod", (128, 128))
    assert [p[:3] for p in parameters(scheme)] == [
        ("weight", (512, 128), "float8_e4m3fn"),
        ("weight_scale_inv", (4, 1), "float32"),
    ]
    assert quantized.linear(FC).name == "UnquantizedLinearMethod"
    assert quantized.attention() is None
    assert modelopt.read_nvfp4_online(config, B200).linear(QKV) == scheme


def mixed(layers: Any, **keys: Any) -> dict[str, Any]:
    return {"quant_algo": "MIXED_PRECISION", "quantized_layers": layers, **keys}


@pytest.mark.parametrize(
    ("algorithm", "method", "names", "block"),
    [
        ("FP8", "ModelOptFp8LinearMethod", ["weight", "weight_scale", "input_scale"], None),
        ("fp8", "ModelOptFp8LinearMethod", ["weight", "weight_scale", "input_scale"], None),
        ("FP8_PB_WO", "Fp8LinearMethod", ["weight", "weight_scale_inv"], (128, 128)),
        ("FP8_BLOCK_SCALES", "Fp8LinearMethod", ["weight", "weight_scale_inv"], (128, 128)),
        ("MXFP8", "Fp8LinearMethod", ["weight", "weight_scale_inv"], (1, 32)),
        (
            "NVFP4",
            "ModelOptFp4LinearMethod",
            ["weight", "input_scale", "weight_scale_2", "weight_scale"],
            None,
        ),
        (
            "W4A16_NVFP4",
            "ModelOptNvFp4A16LinearMethod",
            ["weight", "weight_scale_2", "weight_scale", "input_scale"],
            None,
        ),
        ("INT4_AWQ", "UnquantizedLinearMethod", ["weight"], None),
    ],
)
def test_mixed(algorithm: str, method: str, names: list[str], block: tuple[int, int] | None) -> None:
    quantized = modelopt.read_mixed(mixed({O_PROJ.prefix: {"quant_algo": algorithm}}), RELEASE)
    scheme = quantized.linear(O_PROJ)
    assert (scheme.name, [p.name for p in scheme.parameters], scheme.block_size) == (method, names, block)
    assert quantized.linear(FC).name == "UnquantizedLinearMethod"


def test_mixed_shards_need_the_mapping_of_the_class() -> None:
    nvfp4 = {"quant_algo": "NVFP4", "group_size": 16}
    config = mixed({f"layers.0.self_attn.{shard}": nvfp4 for shard in STACKED["qkv_proj"]})
    assert modelopt.read_mixed(config, NEXT).linear(QKV).name == "ModelOptFp4LinearMethod"
    assert modelopt.read_mixed(config, RELEASE).linear(QKV).name == "UnquantizedLinearMethod"
    config["quantized_layers"]["layers.0.self_attn.q_proj"] = {"quant_algo": "FP8"}
    with pytest.raises(Refused, match="mixed quant_algo"):
        modelopt.read_mixed(config, NEXT).linear(QKV)


def test_mixed_finds_a_module_by_what_lies_in_it_and_under_a_language_model() -> None:
    config = mixed({"fc.inner": {"quant_algo": "FP8"}, "model.language_model.fc": {"quant_algo": "NVFP4"}})
    quantized = modelopt.read_mixed(config, RELEASE)
    assert quantized.linear(FC).name == "ModelOptFp8LinearMethod"
    model_fc = Linear("ReplicatedLinear", "model.fc", 384, (128,), 384, (128,))
    assert quantized.linear(model_fc).name == "ModelOptFp4LinearMethod"


def test_mixed_exclusions_and_cache() -> None:
    layers = {"fc": {"quant_algo": "FP8"}, "embed_tokens": {"quant_algo": "FP8"}}
    quantized = modelopt.read_mixed(mixed(layers, exclude_modules=["*c"]), RELEASE)
    assert quantized.linear(FC).name == "UnquantizedLinearMethod"
    assert quantized.attention() is None
    assert quantized.embedding("embed_tokens") is None
    cached = mixed(layers, ignore=None, exclude_modules=["fc"], kv_cache_scheme={"type": "int"})
    quantized = modelopt.read_mixed(cached, RELEASE)
    assert quantized.linear(FC).name == "ModelOptFp8LinearMethod"
    assert [p[0] for p in parameters(quantized.attention())] == ["k_scale", "v_scale"]


def test_mixed_takes_group_sizes_off_its_layers() -> None:
    layers = {
        "fc": {"quant_algo": "NVFP4", "group_size": 32},
        "a": {"quant_algo": "W4A16_NVFP4", "group_size": 64},
        O_PROJ.prefix: {"quant_algo": "FP8_PB_WO", "group_size": "64"},
    }
    quantized = modelopt.read_mixed({"quantization": mixed(layers)}, RELEASE)
    assert {p.name: p.shape for p in quantized.linear(FC).parameters}["weight_scale"] == (128, 12)
    assert quantized.linear(O_PROJ).block_size == (64, 64)


def test_an_nvfp4_embedding_is_not_modelled() -> None:
    config = mixed({"embed_tokens": {"quant_algo": "NVFP4"}})
    with pytest.raises(NotModelled):
        modelopt.read_mixed(config, RELEASE).embedding("embed_tokens")
    excluded = modelopt.read_mixed({**config, "ignore": ["embed_tokens"]}, RELEASE)
    assert excluded.embedding("embed_tokens") is None


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"quant_algo": "NVFP4", "quantized_layers": {"fc": {"quant_algo": "NVFP4"}}},
        mixed({}),
        mixed(None),
        mixed(["fc"]),
        mixed({"fc": None}),
        mixed({"fc": {"quant_algo": None}}),
        mixed({"fc": {"quant_algo": "NVFP4"}}, ignore=5),
        mixed({"fc": {"quant_algo": "FP8_PB_WO", "group_size": "x"}}),
        mixed({"fc": {"quant_algo": "FP8_PB_WO", "group_size": None}}),
        mixed({"a": {"quant_algo": "FP8_PB_WO", "group_size": 64}, "b": {"quant_algo": "FP8_BLOCK_SCALES"}}),
    ],
)
def test_refused_as_mixed(config: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        modelopt.read_mixed(config, RELEASE)


def test_a_mixed_layer_without_an_algorithm_fails_when_it_is_asked_for() -> None:
    quantized = modelopt.read_mixed(mixed({"fc": {}}), RELEASE)
    assert quantized.linear(O_PROJ).name == "UnquantizedLinearMethod"
    with pytest.raises(Refused):
        quantized.linear(FC)


def test_cards_that_are_too_old() -> None:
    ampere, turing = Surroundings({}, 80, {}), Surroundings({}, 75, {})
    modelopt.read_fp4(NVFP4, ampere)
    with pytest.raises(Refused, match="compute capability 89"):
        modelopt.read_fp8(FP8, ampere)
    with pytest.raises(Refused, match="compute capability 80"):
        modelopt.read_fp4(NVFP4, turing)
    with pytest.raises(Refused, match="compute capability 80"):
        modelopt.fp4_online(turing)
    with pytest.raises(Refused, match="compute capability 100"):
        modelopt.nvfp4_online(RELEASE)
