"""The methods `w8a8_fp8` and `w8a8_int8`; expected values were read off SGLang 0.5.23."""

from typing import Any

import pytest

from dflash_audit.quantization import w8a8
from dflash_audit.quantization.config import Surroundings
from dflash_audit.refusal import Refused
from dflash_audit.tree import Kind, Linear, Placement, Scheme

STACKED = {"qkv_proj": ("q_proj", "k_proj", "v_proj"), "gate_up_proj": ("gate_proj", "up_proj")}
RELEASE = Surroundings({}, 90, {})
NEXT = Surroundings(STACKED, 90, {})
QKV = Linear("QKVParallelLinear", "layers.0.self_attn.qkv_proj", 128, (256, 128, 128), 128, (256, 128, 128))

WEIGHT = Placement(Kind.WEIGHT, output_dim=0, input_dim=1)
ROW_SCALE = Placement(Kind.CHANNEL_SCALE, output_dim=0)


def parameters(scheme: Scheme) -> list[tuple[Any, ...]]:
    return [(p.name, p.shape, p.dtype, p.placement) for p in scheme.parameters]


@pytest.mark.parametrize("method", ["compressed-tensors", "w8a8_fp8"])
def test_fp8(method: str) -> None:
    quantized = w8a8.read_fp8({"quant_method": method, "ignore": ["re:.*"]}, RELEASE)
    scheme = quantized.linear(QKV)
    assert (scheme.name, scheme.loader) == ("W8A8Fp8LinearMethod", "v1")
    assert parameters(scheme) == [
        ("weight", (512, 128), "float8_e4m3fn", WEIGHT),
        ("weight_scale", (512, 1), "float32", ROW_SCALE),
    ]
    assert quantized.attention() is None
    assert quantized.embedding("embed_tokens") is None


@pytest.mark.parametrize(
    "quantized", [w8a8.fp8_online(RELEASE), w8a8.read_fp8({"quant_method": "compressed_tensors"}, RELEASE)]
)
def test_fp8_of_dense_weights(quantized: Any) -> None:
    assert parameters(quantized.linear(QKV)) == [("weight", (512, 128), "bfloat16", WEIGHT)]


@pytest.mark.parametrize("config", [{}, {"quant_method": None}])
def test_fp8_refused(config: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        w8a8.read_fp8(config, RELEASE)


@pytest.mark.parametrize("quantized", [w8a8.int8_online(RELEASE), w8a8.read_int8({"ignore": None}, RELEASE)])
def test_int8(quantized: Any) -> None:
    scheme = quantized.linear(QKV)
    assert (scheme.name, scheme.loader) == ("W8A8Int8LinearMethod", "v1")
    assert parameters(scheme) == [
        ("weight", (512, 128), "int8", WEIGHT),
        ("weight_scale", (512, 1), "float32", ROW_SCALE),
    ]
    assert quantized.attention() is None
    assert quantized.embedding("embed_tokens") is None


@pytest.mark.parametrize(
    ("ignore", "in_release", "in_next"),
    [
        (["self_attn.qkv_proj"], True, False),
        (["layers.0.self_attn.qkv_proj"], True, True),
        ([r"re:.*\.qkv_proj$"], True, False),
        (["q_proj", "k_proj", "v_proj"], False, True),
        (["self_attn"], False, False),
        ([], False, False),
        ("qkv_proj", False, False),
    ],
)
def test_int8_ignored(ignore: Any, in_release: bool, in_next: bool) -> None:
    for surroundings, dense in ((RELEASE, in_release), (NEXT, in_next)):
        scheme = w8a8.read_int8({"ignore": ignore}, surroundings).linear(QKV)
        assert scheme.name == ("UnquantizedLinearMethod" if dense else "W8A8Int8LinearMethod")


def test_entries_one_by_one() -> None:
    quantized = w8a8.read_int8({"ignore": ["q_proj", r"re:.*\.fc$"]}, RELEASE)
    assert quantized.left_dense == ("q_proj", r"re:.*\.fc$")
    assert quantized.leaves_dense("q_proj", "layers.0.self_attn.q_proj")
    assert not quantized.leaves_dense(r"re:.*\.fc$", "fc")
    assert w8a8.fp8_online(RELEASE).left_dense == ()


@pytest.mark.parametrize("ignore", [["q_proj"], ["re:("], [5], 5, False])
def test_int8_ignore_lists_that_fail_at_the_first_layer(ignore: Any) -> None:
    quantized = w8a8.read_int8({"ignore": ignore}, NEXT)
    with pytest.raises(Refused):
        quantized.linear(QKV)


def test_int8_gives_whatever_it_ignores_the_method_of_a_linear() -> None:
    quantized = w8a8.read_int8({"ignore": ["re:.*"]}, RELEASE)
    assert quantized.linear(QKV).name == "UnquantizedLinearMethod"
    with pytest.raises(Refused):
        quantized.attention()
    with pytest.raises(Refused):
        quantized.embedding("embed_tokens")


def test_cards_that_are_too_old() -> None:
    ampere = Surroundings({}, 86, {})
    with pytest.raises(Refused, match="compute capability 89"):
        w8a8.fp8_online(ampere)
    w8a8.int8_online(ampere)
    with pytest.raises(Refused, match="compute capability 75"):
        w8a8.int8_online(Surroundings({}, 70, {}))
