"""Which quantization method a draft gets, and the config that the method is given.

Source: SGLang 0.5.23 `srt/configs/model_config.py` (`_parse_quant_hf_config`,
`_parse_modelopt_quant_config`, `_verify_quantization`), each method's
`override_quantization_method`, `srt/model_loader/weight_utils.py` (`get_quant_config`)
and `checkpoint_quantization.py` beside it; all as they go for a draft on CUDA whose
quantization nobody set apart from the target's.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

from dflash_audit.quantization import METHODS, WITHOUT_CONFIG, marlin, reader, reader_without_config
from dflash_audit.quantization.config import CURRENT, Dialect, QuantConfig, Surroundings
from dflash_audit.quantization.list_lengths import refuse_long_lists
from dflash_audit.refusal import NotModelled, Refused

KNOWN: Final = frozenset((
    "fp8", "mxfp8", "minimax_m3_nvfp4", "blockwise_int8", "modelopt", "modelopt_fp8", "modelopt_fp4",
    "nvfp4_online", "modelopt_mixed", "w8a8_int8", "w8a8_fp8", "awq", "awq_marlin", "bitsandbytes",
    "gguf", "gptq_marlin", "moe_wna16", "compressed-tensors", "w4afp8", "petit_nvfp4", "quark",
    "quark_mxfp4", "auto-round", "auto-round-int8", "modelslim", "quark_int4fp8_moe", "humming",
    "mxfp_w4a8", "mxfp4",
))  # fmt: skip
"""Every method of the engine on CUDA: there, `gptq` is none.

Source: SGLang 0.5.23 `srt/layers/quantization/__init__.py`, `QUANTIZATION_METHODS`.
"""

CONFIG_FILES: Final[Mapping[str, tuple[str, ...]]] = {
    "modelopt": ("hf_quant_config.json",),
    "modelopt_fp8": ("hf_quant_config.json",),
    "modelopt_fp4": ("hf_quant_config.json",),
    "modelopt_mixed": ("hf_quant_config.json",),
    "awq": ("quant_config.json", "quantize_config.json"),
    "awq_marlin": ("quantize_config.json",),
    "gptq_marlin": ("quantize_config.json",),
    "auto-round": ("quantization_config.json",),
}
"""The ends of the names of files that a method reads where config.json holds nothing for it.

Source: SGLang 0.5.23, each method's `get_config_filenames`; a method that is not here reads no file.
"""

COMPATIBLE: Final[Mapping[str, tuple[str, ...]]] = {
    "modelopt_fp8": ("modelopt",),
    "modelopt_fp4": ("modelopt", "fp8"),
    "modelopt_mixed": ("modelopt",),
    "nvfp4_online": ("fp8", "modelopt_fp8", "modelopt_fp4", "modelopt_mixed"),
    "minimax_m3_nvfp4": ("mxfp8",),
    "petit_nvfp4": ("modelopt",),
    "w8a8_int8": ("compressed-tensors", "compressed_tensors"),
    "w8a8_fp8": ("compressed-tensors", "compressed_tensors"),
    "auto-round-int8": ("compressed-tensors", "compressed_tensors"),
}
"""Asked method -> declared methods over which it prevails.

Source: SGLang 0.5.23 `_verify_quantization`, `compatible_quantization_methods`, and
`preserve_online_draft_quantization` for the last two of `nvfp4_online`.
"""

REQUANTIZING: Final = ("quark_mxfp4",)
"""Source: SGLang 0.5.23 `srt/configs/model_config.py`, `REQUANTIZATION_METHODS`."""

MODELOPT_ALGORITHMS: Final[Mapping[str, str]] = {
    "FP8": "modelopt_fp8",
    "MXFP8": "mxfp8",
    "FP4": "modelopt_fp4",
    "NVFP4": "modelopt_fp4",
    "NVFP4_AWQ": "modelopt_fp4",
    "W4A16_NVFP4": "modelopt_fp4",
}
"""Source: SGLang 0.5.23 `srt/layers/modelopt_utils.py`."""

Origin = Literal["config.json", "hf_quant_config.json"]


class Settled(NamedTuple):
    """The outcome of the config stage.

    `method` is the engine's name, None where the draft is dense. `origin` is
    the file that declared a quantization, None where none did. `config` is the
    `quantization_config` of config.json with what the engine writes into it.
    """

    method: str | None
    origin: Origin | None
    config: Mapping[str, Any] | None


def settle(
    draft: Mapping[str, Any],
    hf_quant_config: Mapping[str, Any] | None,
    asked: str | None,
    capability: int = 90,
    dialect: Dialect = CURRENT,
) -> Settled:
    """The method of a draft: `draft` are the attributes of its config, `asked` is --quantization.

    `hf_quant_config` is the content of the file of that name, None without one;
    `capability` the card's compute capability times ten, `dialect` the engine's version's.

    Raises:
        Refused: the engine stops at the config, or knows no such method.
    """
    own = draft.get("quantization_config")
    if own is not None:
        own = _object(own, "quantization_config")
        _check_hybrid(own)
        own = {**own, **_named_by_modelopt({"quantization": own})} if _is_modelopt(own) else own
    compression = draft.get("compression_config")
    if dialect.needs_section and own is None and compression is None and hf_quant_config is not None:
        _object(_object(hf_quant_config, "hf_quant_config.json").get("quantization"), "quantization")
    declared, origin = _declared(own, compression, hf_quant_config)
    asked = None if asked is None else asked.lower()
    method = asked if declared is None else _method(declared, asked, capability)
    if method is not None and method not in (KNOWN | dialect.more) - dialect.fewer:
        raise Refused(f"Unknown quantization method: {method}.")
    return Settled(method, origin, own)


def _object(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise Refused(f"{name} must be an object, got {value!r}.")
    return value


def _check_hybrid(own: Mapping[str, Any]) -> None:
    """Refuse what the engine cannot read of a hybrid of FP8 and NVFP4 experts (`nvfp4_moe_meta`)."""
    algorithm, experts = (str(own.get(key, "")).upper() for key in ("quant_algo", "moe_quant_algo"))
    group_size = own.get("group_size")
    if (algorithm, experts) != ("MIXED_PRECISION", "NVFP4") or group_size is None:
        return
    try:
        int(group_size)
    except (TypeError, ValueError, OverflowError) as error:
        raise Refused(f"group_size must be an integer, got {group_size!r}.") from error
    if own.get("ignore") and not isinstance(own["ignore"], str | list | Mapping):
        raise Refused(f"ignore must be a list, got {own['ignore']!r}.")


def _is_modelopt(own: Mapping[str, Any]) -> bool:
    return "quant_method" not in own or own["quant_method"] == "modelopt"


def _declared(
    own: Mapping[str, Any] | None, compression: Any, hf_quant_config: Any
) -> tuple[Mapping[str, Any] | None, Origin | None]:
    """What the draft's files declare, and where."""
    if own is not None:
        return own, "config.json"
    if compression is not None:
        return _object(compression, "compression_config"), "config.json"
    if hf_quant_config is None:
        return None, None
    named = _named_by_modelopt(_object(hf_quant_config, "hf_quant_config.json"))
    return (named, "hf_quant_config.json") if named else (None, None)


def _named_by_modelopt(config: Mapping[str, Any]) -> dict[str, Any]:
    """The method that a ModelOpt config names, with keys of its own; empty where it names none."""
    section = config.get("quantization", config)
    if not isinstance(section, Mapping):
        return {}
    section = section["quantization"] if isinstance(section.get("quantization"), Mapping) else section
    algorithm = section.get("quant_algo")
    if algorithm == "MIXED_PRECISION":
        method = "modelopt_mixed" if _has_nvfp4_layers(section) else "w4afp8"
    elif algorithm and _says_fp4(algorithm):
        method = "modelopt_fp4"
    elif algorithm == "FP8":
        method = "modelopt_fp8"
    elif algorithm == "MXFP8":
        return _mxfp8(section)
    else:
        return {}
    return {"quant_method": method, "quant_algo": algorithm}


def _says_fp4(algorithm: Any) -> bool:
    """Whether FP4 is in the name, or in whatever else Python looks for it in."""
    if not isinstance(algorithm, str | list | Mapping):
        raise Refused(f"quant_algo must be a string, got {algorithm!r}.")
    return "FP4" in algorithm or "NVFP4" in algorithm


def _has_nvfp4_layers(section: Mapping[str, Any]) -> bool:
    layers = _object(section.get("quantized_layers") or {}, "quantized_layers")
    return any(
        str(layer.get("quant_algo", "")).upper() in ("NVFP4", "W4A16_NVFP4")
        for layer in layers.values()
        if isinstance(layer, Mapping)
    )


def _mxfp8(section: Mapping[str, Any]) -> dict[str, Any]:
    """ModelOpt's MXFP8 in the keys of the method `mxfp8`."""
    ignored = section.get("exclude_modules", section.get("ignore"))
    cache = section.get("kv_cache_quant_algo")
    scheme = section.get("kv_cache_scheme")
    if cache is None and isinstance(scheme, Mapping):
        cache = "FP8" if scheme.get("type") == "float" and scheme.get("num_bits") == 8 else None
    return {
        "quant_method": "mxfp8",
        "quant_algo": section["quant_algo"],
        "activation_scheme": "dynamic",
        "weight_block_size": [1, section.get("group_size", 32)],
        "scale_fmt": "ue8m0",
        **({} if ignored is None else {"modules_to_not_convert": ignored}),
        **({} if cache is None else {"kv_cache_quant_algo": cache}),
    }


def _method(declared: Mapping[str, Any], asked: str | None, capability: int) -> str:
    """The method of a draft that declares one: its own, unless the asked one prevails."""
    method = declared.get("quant_method", asked or "")
    if not isinstance(method, str):
        raise Refused(f"quant_method must be a string, got {method!r}.")
    method = method.lower()
    kept = asked == "nvfp4_online" and method in ("modelopt_fp4", "modelopt_mixed")
    if asked not in REQUANTIZING and not kept:
        method_override = _override(declared, asked, capability)
        if method_override is not None:
            return method_override
    if asked is not None and method in COMPATIBLE.get(asked, ()):
        return asked
    return method


def _override(declared: Mapping[str, Any], asked: str | None, capability: int) -> str | None:
    """The first method, in the engine's order, that claims the declared config for itself."""
    return (
        _modelopt_override(declared, asked)
        or _awq_override(declared, asked, capability)
        or _gptq_override(declared, asked, capability)
        or _moe_override(declared, asked, capability)
        or ("humming" if asked == "humming" and declared.get("quant_method") != "mxfp4" else None)
    )


def _modelopt_override(declared: Mapping[str, Any], asked: str | None) -> str | None:
    method = declared.get("quant_method")
    if asked != "nvfp4_online":
        # The engine puts this key into upper case whatever the method is.
        algorithm = declared.get("quant_algo", "")
        if not isinstance(algorithm, str):
            raise Refused(f"quant_algo must be a string, got {algorithm!r}.")
        if asked == "modelopt" and algorithm.upper() in MODELOPT_ALGORITHMS:
            return MODELOPT_ALGORITHMS[algorithm.upper()]
        if method in ("modelopt_fp8", "modelopt_fp4"):
            return str(method)
    return "modelopt_mixed" if method == "modelopt_mixed" else None


def _lower_method(declared: Mapping[str, Any]) -> str:
    return str(declared.get("quant_method", "")).lower()


def _hashable(value: Any, key: str) -> Any:
    """`value`, which the engine looks up in a table; `Refused` for a list or an object."""
    if isinstance(value, list | Mapping):
        raise Refused(f"{key} must be a number or a boolean, got {value!r}.")
    return value


def _awq_override(declared: Mapping[str, Any], asked: str | None, capability: int) -> str | None:
    bits, group_size, zero_point = (declared.get(key) for key in ("bits", "group_size", "zero_point"))
    if _lower_method(declared) != "awq" or None in (bits, group_size, zero_point):
        return None
    from dflash_audit.quantization import awq  # only now: most drafts do without

    quant_type = awq.QUANT_TYPES.get(_hashable(bits, "bits"))
    if quant_type is None or marlin.objection(quant_type, group_size, zero_point, capability):
        return None
    return "awq_marlin" if asked in (None, "marlin", "awq_marlin") else None


def _gptq_override(declared: Mapping[str, Any], asked: str | None, capability: int) -> str | None:
    bits, group_size, sym = (declared.get(key) for key in ("bits", "group_size", "sym"))
    if _lower_method(declared) != "gptq" or None in (bits, group_size, sym, declared.get("desc_act")):
        return None
    from dflash_audit.quantization import gptq  # only now: most drafts do without

    quant_type = gptq.quant_type(_hashable(bits, "bits"), _hashable(sym, "sym"))
    if quant_type is None or marlin.objection(quant_type, group_size, False, capability):
        return None
    if declared.get("checkpoint_format") == "marlin" or declared.get("is_marlin_format", False):
        return None
    return "gptq_marlin" if asked in (None, "marlin", "gptq_marlin") else None


def _moe_override(declared: Mapping[str, Any], asked: str | None, capability: int) -> str | None:
    if asked != "moe_wna16":
        return None
    from dflash_audit.quantization import awq  # only now: most drafts do without

    method, bits = _lower_method(declared), declared.get("bits")
    for_gptq = method == "gptq" and not declared.get("desc_act") and bits in (4, 8)
    for_awq = method == "awq" and bits == 4 and capability >= awq.MIN_CAPABILITY
    return "moe_wna16" if for_gptq or for_awq else None


def read_config(
    settled: Settled, surroundings: Surroundings, json_files: Mapping[str, Any]
) -> QuantConfig | None:
    """The quantization config of a settled draft (`get_quant_config`), None where it is dense.

    `json_files` are the `*.json` files of the draft's folder, not of folders
    below it: name -> parsed content.

    Raises:
        Refused: the method finds no config, more than one, or does not take it.
        NotModelled: the engine knows the method, and this audit does not.
    """
    method = settled.method
    if method is None:
        return None
    if method not in METHODS:
        raise NotModelled(f"The quantization method {method} is not modelled.")
    config = _for_method(settled.config, surroundings.draft)
    if config is not None and not (method == "modelopt_mixed" and _lacks_layers_or_cache(config)):
        return _read(method, config, surroundings)
    if method in CONFIG_FILES:
        return _from_file(method, surroundings, json_files)
    return _from_nothing(method, surroundings)


def _read(method: str, config: Mapping[str, Any], surroundings: Surroundings) -> QuantConfig:
    refuse_long_lists(config)
    return reader(method)(config, surroundings)


def _for_method(own: Mapping[str, Any] | None, draft: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The quantization config inside config.json (`resolve_checkpoint_quant_spec`)."""
    if own is not None:
        return own
    text = draft.get("text_config")
    if text is not None:
        inner = _object(text, "text_config").get("quantization_config")
        if inner is not None:
            return _object(inner, "text_config.quantization_config")
    compression = draft.get("compression_config")
    return None if compression is None else _object(compression, "compression_config")


def _lacks_layers_or_cache(config: Mapping[str, Any]) -> bool:
    """Whether a config of mixed precision has to be read from its file instead."""
    return "quantized_layers" not in config or not (
        "kv_cache_quant_algo" in config or "kv_cache_scheme" in config
    )


def _from_nothing(method: str, surroundings: Surroundings) -> QuantConfig:
    if method == "compressed-tensors":
        raise Refused("compressed-tensors needs a quantization config in config.json.")
    if method not in WITHOUT_CONFIG:
        raise NotModelled(f"The quantization method {method} without a config is not modelled.")
    return reader_without_config(method)(surroundings)


def _from_file(method: str, surroundings: Surroundings, json_files: Mapping[str, Any]) -> QuantConfig | None:
    # A glob passes over hidden files.
    found = [n for n in sorted(json_files) if n.endswith(CONFIG_FILES[method]) and not n.startswith(".")]
    if not found and method == "modelopt_fp4":
        return reader_without_config(method)(surroundings)
    if not found:
        raise Refused(f"Cannot find the config file for {method}.")
    if len(found) > 1:
        raise Refused(f"Found multiple config files for {method}: {', '.join(found)}.")
    config = _object(json_files[found[0]], found[0])
    as_method = _modelopt_reader(method, config, surroundings.draft) if "modelopt" in method else method
    return None if as_method is None else _read(as_method, config, surroundings)


def _modelopt_reader(method: str, config: Mapping[str, Any], draft: Mapping[str, Any]) -> str | None:
    """The method whose reader takes a ModelOpt file, None where the engine goes on unquantized."""
    producer = _object(config.get("producer", {}), "producer").get("name", "")
    if not isinstance(producer, str):
        raise Refused(f"The producer's name must be a string, got {producer!r}.")
    if not producer.startswith("modelopt"):
        return method
    section = config["quantization"] if isinstance(config.get("quantization"), Mapping) else config
    algorithm = section.get("quant_algo")
    if algorithm is None:
        architecture = draft["architectures"][0]
        if architecture != "LlamaForCausalLMEagle3":
            raise Refused(f"Invalid quant_config for {method} and {architecture}: it names no quant_algo.")
        return None
    if algorithm == "FP8" or method == "modelopt_fp8":
        return "modelopt_fp8"
    return "modelopt_fp4" if _says_fp4(algorithm) else method
