"""Which quantization method a draft gets, and the config that the method is given.

Source: vLLM 0.33.0 `transformers_utils/config.py` (`get_config`),
`transformers_utils/model_arch_config_convertor.py` (`_normalize_quantization_config`),
`config/model.py` (`_verify_quantization`), each method's `override_quantization_method`, and
`model_executor/model_loader/weight_utils.py` (`get_quant_config`). A draft's method is its
own: the server's --quantization is its target's.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from dflash_audit.engines.vllm.quantization import METHODS, reader
from dflash_audit.engines.vllm.quantization.config import QuantConfig, Surroundings
from dflash_audit.quantization.list_lengths import refuse_long_lists
from dflash_audit.refusal import NotModelled, Refused

KNOWN: Final = (
    "awq", "auto_awq", "fp8", "fbgemm_fp8", "fp_quant", "modelopt", "modelopt_fp4", "modelopt_mxfp8",
    "modelopt_mixed", "auto_gptq", "gptq", "gptq_marlin", "awq_marlin", "humming", "compressed-tensors",
    "experts_int8", "quark", "moe_wna16", "torchao", "inc", "mxfp4", "gpt_oss_mxfp4", "deepseek_v4_fp8",
    "online", "fp8_per_tensor", "fp8_per_block", "fp8_per_channel", "int8_per_channel_weight_only",
    "nvfp4_per_token", "mxfp8",
)  # fmt: skip
DEPRECATED: Final = ("fbgemm_fp8", "fp_quant")

RENAMED: Final[Mapping[str, str]] = {"gptq": "auto_gptq", "awq": "auto_awq", "auto-round": "inc"}
"""Declared method -> the one that claims it."""

LEGACY_MODELOPT: Final[Mapping[str, str]] = {
    "FP8": "modelopt",
    "FP8_PER_CHANNEL_PER_TOKEN": "modelopt",
    "FP8_PB_WO": "modelopt",
    "NVFP4": "modelopt_fp4",
    "MIXED_PRECISION": "modelopt_mixed",
}
"""`quant_algo` of a config with ModelOpt for its producer -> method."""

MIN_CAPABILITY: Final[Mapping[str, int]] = {
    "fp8": 75, "compressed-tensors": 70, "modelopt": 80, "modelopt_fp4": 75, "modelopt_mxfp8": 80,
    "mxfp8": 80, "modelopt_mixed": 75, "auto_gptq": 60, "gptq_marlin": 60, "auto_awq": 75,
    "awq_marlin": 75, "inc": 60,
}  # fmt: skip
"""Source: each config's `get_min_capability`."""


class Settled(NamedTuple):
    """The outcome of the config stage: the method, None where the draft is dense, and its config."""

    method: str | None
    config: Mapping[str, Any]


def settle(draft: Mapping[str, Any], hf_quant_config: Any) -> Settled:
    """The method of a draft: `draft` are the attributes of its config, `hf_quant_config` that file's content.

    Raises:
        Refused: the engine stops at the config, or knows no such method.
    """
    own = draft.get("quantization_config")
    own = hf_quant_config if own is None else own
    declared = (
        draft.get("compression_config") if own is None else _producer(_table(own, "quantization_config"))
    )
    if declared is None:
        return Settled(None, {})
    declared = _table(declared, "the quantization config")
    method = declared.get("quant_method", "")
    if not isinstance(method, str):
        raise Refused(f"quant_method must be a string, got {method!r}")
    method = method.lower().replace("compressed_tensors", "compressed-tensors")
    config = {**declared, "quant_method": method}
    method = _claimed(method, config)
    if method == "":
        return Settled(None, config)
    if method not in KNOWN:
        raise Refused(f"unknown quantization method: {method}")
    if method in DEPRECATED:
        raise Refused(f"the quantization method {method} is deprecated, and asks for a flag")
    return Settled(method, config)


def _table(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise Refused(f"{name} must be an object, got {value!r}")
    return value


def _producer(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The config with the method that ModelOpt's older layout stands for."""
    producer = _table(config.get("producer", {}), "producer").get("name")
    section = config.get("quantization", {})
    legacy = isinstance(section, Mapping) and "modelopt_quant_config" in section
    if producer != "modelopt" and not legacy:
        return config
    algorithm = _table(section, "quantization").get("quant_algo")
    if algorithm is None:
        return config
    method = LEGACY_MODELOPT.get(str(algorithm).upper())
    if method is None:
        raise Refused(f"unknown ModelOpt quant algo: {algorithm}")
    return {**config, "quant_method": method}


def _claimed(method: str, config: Mapping[str, Any]) -> str:
    """The method that claims a declared one for itself."""
    if method in RENAMED:
        return RENAMED[method]
    if not method.startswith("modelopt"):
        return method
    section = config.get("quantization", config)
    if not isinstance(section, Mapping):
        return method
    algorithm = str(section.get("quant_algo", "")).upper()
    if algorithm == "FP8":
        return "modelopt"
    if "FP4" in algorithm:
        return "modelopt_fp4"
    if "MXFP8" in algorithm:
        return "modelopt_mxfp8"
    return "modelopt_mixed" if algorithm == "MIXED_PRECISION" else method


def read_config(
    settled: Settled, surroundings: Surroundings, json_files: Mapping[str, Any]
) -> QuantConfig | None:
    """The quantization config of a settled draft, None where it is dense.

    `json_files` are the `*.json` files of the draft's folder: name -> parsed content.

    Raises:
        Refused: the method does not take the config.
        NotModelled: the engine knows the method, and this audit does not.
    """
    method = settled.method
    if method is None:
        return None
    if method not in METHODS:
        raise NotModelled(f"The quantization method {method} is not modelled.")
    config = settled.config
    if method == "modelopt_mixed" and "quantized_layers" not in config:
        config = _from_file(json_files)
    refuse_long_lists(config)
    read = reader(method)(config, surroundings)
    needed = MIN_CAPABILITY[method]
    if surroundings.capability < needed:
        raise Refused(f"{method} needs compute capability {needed}, the GPU has {surroundings.capability}")
    return read


def _from_file(json_files: Mapping[str, Any]) -> Mapping[str, Any]:
    found = [name for name in sorted(json_files) if name.endswith("hf_quant_config.json")]
    if len(found) != 1:
        raise Refused(f"modelopt_mixed wants one hf_quant_config.json, there are {len(found)}")
    config = _table(json_files[found[0]], found[0])
    if _table(config.get("producer", {}), "producer").get("name") != "modelopt":
        raise Refused(f"unsupported quantization config for modelopt_mixed in {found[0]}")
    return config
