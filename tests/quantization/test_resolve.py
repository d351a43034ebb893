"""What SGLang 0.5.23 makes of a draft's config, its other files and --quantization."""

from collections.abc import Mapping
from typing import Any

import pytest

from dflash_audit.quantization import METHODS, WITHOUT_CONFIG
from dflash_audit.quantization.auto_round import AutoRound
from dflash_audit.quantization.awq import AwqMarlin
from dflash_audit.quantization.config import Surroundings
from dflash_audit.quantization.fp8 import Fp8
from dflash_audit.quantization.gptq import GptqMarlin
from dflash_audit.quantization.modelopt import ModelOptFp4, ModelOptFp8, ModelOptMixed, OnlineNvFp4
from dflash_audit.quantization.resolve import CONFIG_FILES, KNOWN, Settled, read_config, settle
from dflash_audit.quantization.w8a8 import W8A8Fp8, W8A8Int8
from dflash_audit.refusal import NotModelled, Refused

GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False, "sym": True}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}
CT = {"quant_method": "compressed-tensors", "format": "pack-quantized"}
NVFP4 = {"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16, "ignore": []}
NVFP4_FILE = {
    "producer": {"name": "modelopt"},
    "quantization": {"quant_algo": "NVFP4", "exclude_modules": [], "group_size": 16},
}
MIXED = {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}
LAYERS = {"layers.0.mlp.down_proj": {"quant_algo": "NVFP4", "group_size": 16}}


@pytest.mark.parametrize(
    ("own", "asked", "method"),
    [
        (GPTQ, None, "gptq_marlin"),
        (GPTQ | {"quant_method": "GPTQ"}, None, "gptq_marlin"),
        (GPTQ, "marlin", "gptq_marlin"),
        (GPTQ | {"bits": 8, "sym": 1, "group_size": -1}, "GPTQ_Marlin", "gptq_marlin"),
        (GPTQ | {"quant_method": "gptq_marlin", "bits": 3}, None, "gptq_marlin"),
        (GPTQ, "moe_wna16", "moe_wna16"),
        (AWQ, None, "awq_marlin"),
        (AWQ, "awq", "awq"),
        (AWQ, "fp8", "awq"),  # an asked method that is not its own keeps Marlin away
        (AWQ | {"bits": 8}, None, "awq"),
        (AWQ | {"zero_point": False}, None, "awq"),
        (AWQ | {"group_size": 16}, None, "awq"),
        (AWQ, "moe_wna16", "moe_wna16"),
        (CT, None, "compressed-tensors"),
        (CT, "fp8", "compressed-tensors"),
        (CT, "w8a8_fp8", "w8a8_fp8"),
        (CT, "w8a8_int8", "w8a8_int8"),
        (CT, "auto-round-int8", "auto-round-int8"),
        (CT, "humming", "humming"),
        ({"quant_method": "auto-round"}, "gptq_marlin", "auto-round"),
        ({"quant_method": "FP8"}, None, "fp8"),
        ({"quant_method": "fp8"}, "modelopt_fp4", "modelopt_fp4"),
        ({"quant_method": "fp8"}, "nvfp4_online", "nvfp4_online"),
        ({"quant_method": "mxfp4"}, "humming", "mxfp4"),
        ({}, "fp8", "fp8"),
        (NVFP4, None, "modelopt_fp4"),
        (NVFP4, "modelopt", "modelopt_fp4"),
        (NVFP4, "nvfp4_online", "nvfp4_online"),
        (NVFP4, "modelopt_fp8", "modelopt_fp4"),
        (NVFP4, "quark_mxfp4", "modelopt_fp4"),
        ({"quant_algo": "NVFP4"}, None, "modelopt_fp4"),
        ({"quant_algo": "W4A16_NVFP4"}, None, "modelopt_fp4"),
        ({"quant_algo": "FP8"}, None, "modelopt_fp8"),
        ({"quant_algo": "MXFP8"}, None, "mxfp8"),
        ({"quantization": {"quant_algo": "FP8"}}, None, "modelopt_fp8"),
        ({"quant_method": "modelopt", "quant_algo": "INT4"}, None, "modelopt"),
        ({"quant_method": "modelopt", "quant_algo": "INT4"}, "modelopt_mixed", "modelopt_mixed"),
        ({"quant_method": "fp8", "quant_algo": "fp8"}, "modelopt", "modelopt_fp8"),
        (MIXED | {"quantized_layers": LAYERS}, None, "modelopt_mixed"),
        (MIXED | {"quantized_layers": LAYERS}, "nvfp4_online", "nvfp4_online"),
        (MIXED | {"quantized_layers": {"fc": {"quant_algo": "FP8"}, "a": None}}, None, "w4afp8"),
        (MIXED | {"quantized_layers": []}, None, "w4afp8"),
    ],
)
def test_the_method_of_config_json(own: dict[str, Any], asked: str | None, method: str) -> None:
    settled = settle({"quantization_config": own}, None, asked)

    assert (settled.method, settled.origin) == (method, "config.json")


@pytest.mark.parametrize(
    ("own", "asked"),
    [
        ({}, None),
        ({"quant_method": "gptq"}, None),
        (GPTQ, "gptq"),  # on CUDA the engine has no such method
        (GPTQ, "fp8"),
        (GPTQ | {"group_size": 16}, None),
        (GPTQ | {"sym": False}, None),
        (GPTQ | {"desc_act": None}, None),
        (GPTQ | {"checkpoint_format": "marlin"}, None),
        (GPTQ | {"is_marlin_format": True}, None),
        (GPTQ | {"bits": [4]}, None),
        (GPTQ | {"sym": {}}, None),
        (AWQ | {"bits": []}, None),
        (GPTQ | {"desc_act": True}, "quark_mxfp4"),
        ({"quant_method": "no-such-method"}, None),
        ({"quant_method": "no-such-method"}, "fp8"),
        ({"quant_method": None}, None),
        ({"quant_method": ["fp8"]}, None),
        ({"quant_method": "fp8", "quant_algo": None}, None),
        ({"quant_algo": 8}, None),
        ({"quant_algo": ["NVFP4"]}, None),
        (MIXED | {"quantized_layers": ["fc"]}, None),
        (MIXED | {"moe_quant_algo": "NVFP4", "group_size": "x"}, None),
        (MIXED | {"moe_quant_algo": "nvfp4", "group_size": 16, "ignore": 5}, None),
        ("fp8", None),
        ([], None),
        (False, None),
    ],
)
def test_config_json_refused(own: Any, asked: str | None) -> None:
    with pytest.raises(Refused):
        settle({"quantization_config": own}, None, asked)


def test_before_ampere_marlin_takes_nothing() -> None:
    assert settle({"quantization_config": AWQ}, None, None, capability=75).method == "awq"
    with pytest.raises(Refused, match="gptq"):
        settle({"quantization_config": GPTQ}, None, None, capability=75)


@pytest.mark.parametrize(
    ("draft", "file", "asked", "settled"),
    [
        ({}, None, None, Settled(None, None, None)),
        ({}, None, "FP8", Settled("fp8", None, None)),
        ({"quantization_config": None}, None, "gguf", Settled("gguf", None, None)),
        ({}, NVFP4_FILE, None, Settled("modelopt_fp4", "hf_quant_config.json", None)),
        ({}, NVFP4_FILE, "fp8", Settled("modelopt_fp4", "hf_quant_config.json", None)),
        ({}, {"quantization": NVFP4_FILE}, None, Settled("modelopt_fp4", "hf_quant_config.json", None)),
        ({}, {"quant_algo": "FP8"}, None, Settled("modelopt_fp8", "hf_quant_config.json", None)),
        ({}, {"quantization": {"quant_algo": None}}, None, Settled(None, None, None)),
        ({}, {"quantization": []}, "fp8", Settled("fp8", None, None)),
        ({"compression_config": CT}, NVFP4_FILE, None, Settled("compressed-tensors", "config.json", None)),
        ({"quantization_config": CT}, NVFP4_FILE, None, Settled("compressed-tensors", "config.json", CT)),
        # ModelOpt is not looked for under this key.
        ({"compression_config": NVFP4}, None, None, Settled("modelopt", "config.json", None)),
    ],
)
def test_where_the_method_comes_from(
    draft: dict[str, Any], file: dict[str, Any] | None, asked: str | None, settled: Settled
) -> None:
    assert settle(draft, file, asked) == settled


@pytest.mark.parametrize(
    ("draft", "file", "asked"),
    [
        ({}, [], None),
        ({}, {"quantization": {"quant_algo": 8}}, None),
        ({"compression_config": []}, NVFP4_FILE, None),
        ({"compression_config": {}}, NVFP4_FILE, None),
        ({}, None, "gptq"),
        ({}, None, ""),
    ],
)
def test_a_draft_refused(draft: dict[str, Any], file: Any, asked: str | None) -> None:
    with pytest.raises(Refused):
        settle(draft, file, asked)


def test_modelopt_names_the_method_in_the_config() -> None:
    assert settle({"quantization_config": NVFP4}, None, None).config == NVFP4 | {
        "quant_method": "modelopt_fp4"
    }


def test_modelopt_mxfp8_in_the_keys_of_mxfp8() -> None:
    own = {"quant_algo": "MXFP8", "ignore": ["fc"], "kv_cache_scheme": {"type": "float", "num_bits": 8}}

    assert settle({"quantization_config": own}, None, None).config == own | {
        "quant_method": "mxfp8",
        "activation_scheme": "dynamic",
        "weight_block_size": [1, 32],
        "scale_fmt": "ue8m0",
        "modules_to_not_convert": ["fc"],
        "kv_cache_quant_algo": "FP8",
    }


def read(
    draft: Mapping[str, Any], files: Mapping[str, Any], asked: str | None = None, capability: int = 90
) -> Any:
    draft = {"architectures": ["DFlashDraftModel"], **draft}
    settled = settle(draft, files.get("hf_quant_config.json"), asked, capability)
    return read_config(settled, Surroundings({}, capability, draft), {"config.json": draft, **files})


FP8_FILE = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8", "exclude_modules": []}}
MIXED_FILE = {
    "producer": {"name": "modelopt"},
    "quantization": {"quant_algo": "MIXED_PRECISION", "quantized_layers": LAYERS},
}


@pytest.mark.parametrize(
    ("draft", "files", "asked", "kind"),
    [
        ({}, {}, None, type(None)),
        ({"quantization_config": GPTQ}, {}, None, GptqMarlin),
        ({"quantization_config": AWQ}, {}, None, AwqMarlin),
        ({"compression_config": GPTQ}, {}, None, GptqMarlin),
        (
            {"quantization_config": None, "text_config": {"quantization_config": GPTQ}},
            {},
            "gptq_marlin",
            GptqMarlin,
        ),
        ({}, {"quantize_config.json": GPTQ}, "gptq_marlin", GptqMarlin),
        ({}, {"my_quantize_config.json": GPTQ}, "gptq_marlin", GptqMarlin),
        ({}, {"quantize_config.json": AWQ, "quant_config.json": AWQ}, "awq_marlin", AwqMarlin),
        ({}, {"quantize_config.json": GPTQ, ".quantize_config.json": GPTQ}, "gptq_marlin", GptqMarlin),
        ({}, {"quantization_config.json": GPTQ}, "auto-round", AutoRound),
        ({}, {"hf_quant_config.json": NVFP4_FILE}, None, ModelOptFp4),
        ({}, {"hf_quant_config.json": FP8_FILE}, None, ModelOptFp8),
        ({}, {"hf_quant_config.json": MIXED_FILE}, None, ModelOptMixed),
        # The file decides over the method that config.json settled on, which lacks the layers.
        (
            {"quantization_config": MIXED | {"quant_method": "modelopt_mixed"}},
            {"hf_quant_config.json": FP8_FILE},
            None,
            ModelOptFp8,
        ),
        ({}, {}, "modelopt_fp4", OnlineNvFp4),
        ({}, {}, "fp8", Fp8),
        ({}, {}, "w4afp8", Fp8),
        ({}, {}, "w8a8_fp8", W8A8Fp8),
        ({}, {}, "w8a8_int8", W8A8Int8),
        ({}, {}, "auto-round-int8", W8A8Int8),
    ],
)
def test_the_config_that_is_read(
    draft: dict[str, Any], files: dict[str, Any], asked: str | None, kind: type
) -> None:
    assert type(read(draft, files, asked)) is kind


@pytest.mark.parametrize(
    ("draft", "files", "asked", "reason"),
    [
        ({}, {}, "gptq_marlin", "Cannot find the config file"),
        ({}, {"quantize_config.json.bak": GPTQ}, "gptq_marlin", "Cannot find the config file"),
        ({}, {".quantize_config.json": GPTQ}, "gptq_marlin", "Cannot find the config file"),
        ({}, {}, "modelopt_mixed", "Cannot find the config file"),
        (
            {},
            {"quantize_config.json": GPTQ, "my_quantize_config.json": GPTQ},
            "gptq_marlin",
            "Found multiple",
        ),
        # The name of ModelOpt's file ends as one of AWQ's does.
        ({}, {"hf_quant_config.json": {}, "quant_config.json": AWQ}, "awq", "Found multiple"),
        ({}, {"quantize_config.json": []}, "gptq_marlin", "must be an object"),
        ({}, {"hf_quant_config.json": {"producer": {"name": "modelopt"}}}, "modelopt_fp4", "quant_algo"),
        ({}, {"hf_quant_config.json": {"producer": None, "quant_algo": "FP8"}}, None, "producer"),
        ({}, {"hf_quant_config.json": {"producer": {"name": 1}, "quant_algo": "FP8"}}, None, "producer"),
        (
            {"quantization_config": None, "text_config": {"quantization_config": []}},
            {},
            "fp8",
            "must be an object",
        ),
        ({}, {}, "compressed-tensors", "config.json"),
        ({"quantization_config": {}}, {}, "gptq_marlin", "bits"),
    ],
)
def test_no_config_to_read(
    draft: dict[str, Any], files: dict[str, Any], asked: str | None, reason: str
) -> None:
    with pytest.raises(Refused, match=reason):
        read(draft, files, asked)


@pytest.mark.parametrize("asked", ["quark", "bitsandbytes", "gguf", "mxfp4", "moe_wna16"])
def test_a_known_method_that_is_not_modelled(asked: str) -> None:
    with pytest.raises(NotModelled, match=asked):
        read({}, {}, asked)


def test_every_reader_has_a_known_name() -> None:
    assert set(METHODS) <= set(KNOWN)
    assert set(WITHOUT_CONFIG) <= set(METHODS)
    assert set(CONFIG_FILES) <= set(METHODS)
