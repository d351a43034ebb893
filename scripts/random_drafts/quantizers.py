"""The quantizers by name: compressed-tensors in `compressed.py`, every other method here."""

from collections.abc import Callable, Mapping
from typing import Final

from random_drafts.case import Case, Json, Spec
from random_drafts.compressed import (
    asymmetric_integers,
    compressed_fp4,
    floats,
    integers,
    mixed,
    odd_arguments,
    odd_compressed,
    ordered_integers,
    packed_integers,
    weight_only_floats,
)
from random_drafts.quantizing import (
    GLOBS,
    IGNORED,
    SMALL,
    Layer,
    everything,
    fp4_layer,
    group_size,
    linears,
    quantize,
    some,
    up,
)


def fp8(case: Case) -> None:
    """The method `fp8`: by tensor or by block."""
    blocks, static = case.chance(0.5), case.chance(0.3)
    block = case.pick([128, 128], [128, 128], [64, 64], [1, 128], [128], None, [0, 0], "ab")
    key = case.pick("modules_to_not_convert", "modules_to_not_convert", "ignored_layers")
    ignore = [entry for entry in some(case, IGNORED) if not entry.startswith("re:")]
    config: Json = {"quant_method": "fp8", "activation_scheme": "static" if static else "dynamic"}
    if blocks:
        config["weight_block_size"] = block
    if case.chance(0.8):
        config[key] = ignore
    if case.chance(0.1):
        config["ignored_layers"] = case.pick([], None, "fc", ["fc"], [5])
    if case.chance(0.2):
        config |= {"fmt": "e4m3", "scale_fmt": case.pick("ue8m0", None)}
    if case.chance(0.1):
        config["activation_scheme"] = case.pick("DYNAMIC", None, "static", "token")
    case.config["quantization_config"] = config
    rows, columns = block if isinstance(block, list) and len(block) == 2 and all(block) else (128, 128)
    scale = case.pick("F32", "F32", "BF16", "F8_E8M0", "U8")

    def layer(outputs: int, inputs: int) -> Mapping[str, Spec]:
        found: dict[str, Spec] = {"weight": ("F8_E4M3", [outputs, inputs])}
        if blocks:
            return found | {"weight_scale_inv": (scale, [up(outputs, rows), up(inputs, columns)])}
        found["weight_scale"] = ("F32", case.pick([], [1]))
        return found | ({"input_scale": ("F32", [])} if static else {})

    quantize(case, layer, ignore, everything)


def modelopt(
    case: Case, algorithm: str, layer: Layer, ignore: list[str], fits: Callable[[int, int], bool]
) -> None:
    """Declare a ModelOpt quantization, in config.json or in its own file, and apply it."""
    cache = case.pick(None, None, "FP8", "NVFP4")
    if case.chance(0.5) or "has_embed_tokens" in case.config:
        config: Json = {"quant_method": "modelopt", "quant_algo": algorithm, "producer": {"name": "modelopt"}}
        config[case.pick("ignore", "ignore", "ignore", "exclude_modules", "modules_to_not_convert")] = ignore
        if case.chance(0.7):
            config["group_size"] = case.pick(16, 16, 16, 32)
        if case.chance(0.3):
            config["kv_cache_scheme"] = case.pick(
                None, {"num_bits": 8, "type": "float", "dynamic": False}, {}, "FP8"
            )
        if case.chance(0.2):
            config["kv_cache_quant_algo"] = cache
        if case.chance(0.3):
            weights = {"num_bits": 4, "type": "float", "group_size": 16}
            config["config_groups"] = {"group_0": {"weights": weights, "targets": ["Linear"]}}
        if case.chance(0.1):
            config["quant_method"] = case.pick(
                "modelopt_fp4", "modelopt_fp8", "modelopt_mixed", "MODELOPT", "mxfp8"
            )
        if case.chance(0.05):
            del config["quant_method"]
        case.config["quantization_config"] = config
    else:
        section: Json = {"quant_algo": algorithm, "kv_cache_quant_algo": cache, "exclude_modules": ignore}
        if case.chance(0.85):
            section["group_size"] = 16
        if case.chance(0.1):
            section["exclude_modules"] = case.pick(None, [], "fc")
        nested = {"producer": {"name": "modelopt", "version": "0.39.0"}, "quantization": section}
        case.files["hf_quant_config.json"] = section if case.chance(0.1) else nested
    quantize(case, layer, ignore, fits)


def modelopt_fp8(case: Case) -> None:
    def layer(outputs: int, inputs: int) -> Mapping[str, Spec]:
        scalar = case.pick([], [], [1])
        weight: Spec = ("F8_E4M3", [outputs, inputs])
        return {"weight": weight, "weight_scale": ("F32", scalar), "input_scale": ("F32", scalar)}

    modelopt(case, "FP8", layer, some(case, GLOBS), everything)


def modelopt_fp4(case: Case) -> None:
    algorithm = case.pick("NVFP4", "NVFP4", "NVFP4_AWQ", "W4A16_NVFP4", "W4A16_NVFP4")
    if "has_embed_tokens" in case.config and case.chance(0.9):
        algorithm = "W4A16_NVFP4"
    with_inputs = algorithm != "W4A16_NVFP4" or case.chance(0.2)

    def layer(outputs: int, inputs: int) -> Mapping[str, Spec]:
        found = fp4_layer(outputs, inputs, "weight", "weight_scale_2", case.pick([], [], [1]))
        if with_inputs:
            found["input_scale"] = ("F32", [])
        if algorithm == "NVFP4_AWQ":
            found["pre_quant_scale"] = ("BF16", [inputs])
        return found

    modelopt(case, algorithm, layer, some(case, GLOBS), lambda _, inputs: inputs % 16 == 0)


def modelopt_mxfp8(case: Case) -> None:
    def layer(outputs: int, inputs: int) -> Mapping[str, Spec]:
        return {"weight": ("F8_E4M3", [outputs, inputs]), "weight_scale": ("U8", [outputs, up(inputs, 32)])}

    modelopt(case, "MXFP8", layer, some(case, GLOBS), everything)


def modelopt_mixed(case: Case) -> None:
    """Each layer with an algorithm of its own."""
    algorithms = ["FP8", "NVFP4", "W4A16_NVFP4", "FP8_PB_WO", "MXFP8", "INT8", "fp8"]
    weights = [6, 6, 3, 2, 0.3, 0.3, 1]
    layers: dict[str, Json] = {}
    per_kind = {
        key: case.rng.choices(algorithms, weights)[0]
        for key in ("self_attn", "mlp", "fc", "lilicorr", "markov")
    }
    prefix = case.pick("", "", "", "model.")
    for module in linears(case):
        kind = next((key for key in per_kind if key in module), None)
        if kind is None or SMALL.search(module) or case.chance(0.05):
            continue
        algorithm = per_kind[kind] if case.chance(0.98) else case.rng.choice(algorithms)
        layers[prefix + module] = {"quant_algo": algorithm}
        if algorithm != "FP8" and case.chance(0.8):
            layers[prefix + module]["group_size"] = 128 if algorithm == "FP8_PB_WO" else 16
        outputs, inputs = case.tensors.pop(f"{module}.weight")[1]
        found = _mixed_layer(algorithm, outputs, inputs)
        case.tensors |= {f"{module}.{name}": spec for name, spec in found.items()}
    if case.chance(0.3):
        # As the engine is asked: by the bare or the fused name.
        layers |= {name: {"quant_algo": per_kind["self_attn"]} for name in ("qkv_proj", "o_proj")}
        layers |= {name: {"quant_algo": per_kind["mlp"]} for name in ("gate_up_proj", "down_proj")}
    ignore = some(case, GLOBS, most=2)
    section: Json = {
        "quant_algo": "MIXED_PRECISION",
        "quantized_layers": layers,
        "kv_cache_quant_algo": case.pick(None, "FP8"),
    }
    section["exclude_modules"] = ignore
    if case.chance(0.3):
        case.config["quantization_config"] = {
            "quant_method": case.pick("modelopt", "modelopt_mixed"),
            **section,
        }
        if case.chance(0.5):
            return
    case.files["hf_quant_config.json"] = {"producer": {"name": "modelopt"}, "quantization": section}


def _mixed_layer(algorithm: str, outputs: int, inputs: int) -> Mapping[str, Spec]:
    if "NVFP4" in algorithm:
        return fp4_layer(outputs, inputs, "weight", "weight_scale_2", []) | {"input_scale": ("F32", [])}
    found: dict[str, Spec] = {"weight": ("F8_E4M3", [outputs, inputs])}
    if algorithm == "FP8_PB_WO":
        return found | {"weight_scale_inv": ("F32", [up(outputs, 128), up(inputs, 128)])}
    if algorithm == "MXFP8":
        return found | {"weight_scale_inv": ("U8", [outputs, up(inputs, 32)])}
    return found | {"weight_scale": ("F32", []), "input_scale": ("F32", [])}


def gptq_layer(case: Case, bits: int, size: int, order: bool) -> Layer:
    scale = case.pick("F16", "F16", "BF16", "F32")

    def layer(outputs: int, inputs: int) -> Mapping[str, Spec]:
        groups = 1 if size <= 0 else up(inputs, size)
        found: dict[str, Spec] = {
            "qweight": ("I32", [up(inputs * bits, 32), outputs]),
            "qzeros": ("I32", [groups, up(outputs * bits, 32)]),
            "scales": (scale, [groups, outputs]),
        }
        return found | ({"g_idx": ("I32", [inputs])} if order else {})

    return layer


def gptq(case: Case) -> None:
    bits, size = (
        case.pick(4, 4, 4, 8, 8, 2, 3),
        case.pick(-1, group_size(case, 32, 64, 128), group_size(case, 128, 32, 16)),
    )
    order = case.chance(0.3)
    config: Json = {
        "quant_method": "gptq",
        "bits": bits,
        "group_size": size,
        "desc_act": order,
        "sym": case.chance(0.9),
    }
    if case.chance(0.25):
        pattern = case.pick(
            r"-:.*self_attn.*", r"-:.*down_proj", "-:fc", r"+:.*mlp.*", r".*\.o_proj", "+:o_proj", "-:.*",
        )  # fmt: skip
        changes = case.pick(
            {}, {"bits": 8}, {"bits": 4, "group_size": 32}, {"desc_act": True}, {"group_size": "64"},
            False, None,
        )  # fmt: skip
        config["dynamic"] = {pattern: changes}
    if case.chance(0.2):
        config |= {
            "lm_head": case.pick(True, False),
            "checkpoint_format": case.pick("gptq", "gptq_v2", "marlin"),
        }
    if case.chance(0.1):
        config |= case.pick(
            {"bits": "4"}, {"bits": 4.0}, {"sym": None}, {"sym": 1}, {"group_size": "128"},
            {"desc_act": None}, {"group_size": 48}, {"quant_method": "GPTQ"}, {"dynamic": []},
            {"is_marlin_format": True}, {"quant_method": "gptq_marlin"},
        )  # fmt: skip
    case.config["quantization_config"] = config
    ignore = case.pick([], [], ["fc"], ["re:.*self_attn.*"])
    layer = gptq_layer(case, bits, size, order or case.chance(0.7))
    quantize(case, layer, ignore, lambda outputs, inputs: size <= 0 or inputs % size == 0)


def awq_layer(case: Case, size: int) -> Layer:
    scale = case.pick("F16", "F16", "BF16")

    def layer(outputs: int, inputs: int) -> Mapping[str, Spec]:
        groups = 1 if size <= 0 else up(inputs, size)
        packed = up(outputs, 8)
        return {
            "qweight": ("I32", [inputs, packed]), "qzeros": ("I32", [groups, packed]),
            "scales": (scale, [groups, outputs]),
        }  # fmt: skip

    return layer


def awq(case: Case) -> None:
    size = case.pick(-1, group_size(case, 32, 64, 128), group_size(case, 128, 32, 64))
    ignore = [entry for entry in some(case, IGNORED) if not entry.startswith("re:")]
    config: Json = {
        "quant_method": "awq",
        "bits": 4,
        "group_size": size,
        "zero_point": True,
        "version": "gemm",
    }
    if case.chance(0.8):
        config["modules_to_not_convert"] = ignore
    if case.chance(0.2):
        config |= case.pick(
            {"zero_point": False}, {"zero_point": None}, {"bits": 8}, {"bits": "4"}, {"bits": 4.0},
            {"group_size": 48}, {"modules_to_not_convert": None}, {"modules_to_not_convert": "fc"},
            {"modules_to_not_convert": [5]}, {"quant_method": "AWQ"}, {"quant_method": "awq_marlin"},
            {"w_bit": 4}, {"zero_point": 1},
        )  # fmt: skip
    case.config["quantization_config"] = config
    layer = awq_layer(case, size)
    quantize(
        case, layer, ignore, lambda outputs, inputs: outputs % 8 == 0 and (size <= 0 or inputs % size == 0)
    )


def auto_round(case: Case) -> None:
    bits, size = (
        case.pick(4, 4, 4, 8, 2, 3),
        case.pick(-1, group_size(case, 32, 64, 128), group_size(case, 128, 32, 64)),
    )
    packing = case.pick(
        "auto_round:auto_gptq", "auto_round:auto_gptq", "auto_round:auto_awq", "auto_round", None
    )
    config: Json = {"quant_method": "auto-round", "bits": bits, "group_size": size, "sym": case.chance(0.85)}
    config |= {"data_type": "int"} | ({} if packing is None else {"packing_format": packing})
    if case.chance(0.3):
        config[case.pick("block_name_to_quantize", "to_quant_block_names")] = case.pick(
            "layers",
            "model.layers",
            "layers,fc",
            ["layers"],
            ["qkv_proj", "o_proj"],
            "qkv_proj,down_proj",
            None,
            [],
            [5],
        )
    if case.chance(0.3):
        layer_name = case.pick(
            "fc", "o_proj", ".*o_proj", "layers.0.mlp.down_proj", r".*(q|k|v)_proj", ".*qkv_proj", "(", ".*",
        )  # fmt: skip
        changes = case.pick(
            {"bits": 16}, {"bits": 8}, {"bits": 16, "data_type": "float"}, {"group_size": 32},
            {"sym": False}, {},
        )  # fmt: skip
        config["extra_config"] = {layer_name: changes}
    if case.chance(0.15):
        config |= case.pick(
            {"backend": "gptq"}, {"backend": "awq:marlin"}, {"backend": "x"}, {"desc_act": True},
            {"data_type": "fp"}, {"bits": "4"}, {"extra_config": []}, {"sym": None}, {"group_size": None},
            {"quant_method": "intel/auto-round"}, {"quant_method": "Auto-Round"},
        )  # fmt: skip
    case.config["quantization_config"] = config
    ignore = case.pick([], [], ["fc"])
    layer = (
        awq_layer(case, size)
        if packing == "auto_round:auto_awq"
        else gptq_layer(case, bits, size, case.chance(0.3))
    )
    quantize(
        case, layer, ignore, lambda outputs, inputs: outputs % 8 == 0 and (size <= 0 or inputs % size == 0)
    )


def eight_bits(case: Case) -> None:
    """`w8a8_int8` and `w8a8_fp8`, declared or asked for over compressed-tensors."""
    method, dtype = case.pick(("w8a8_int8", "I8"), ("w8a8_int8", "I8"), ("w8a8_fp8", "F8_E4M3"))
    if case.chance(0.3):
        (integers if dtype == "I8" else floats)(case)
        case.options += ["--quantization", case.pick(method, method, "auto-round-int8")]
        return
    method = case.pick(method, method, method, method, "auto-round-int8") if dtype == "I8" else method
    ignore = some(case, IGNORED, most=2)
    case.config["quantization_config"] = {"quant_method": method}
    if case.chance(0.7):
        case.config["quantization_config"]["ignore"] = ignore
    scale = case.pick("F32", "F32", "BF16")

    def layer(outputs: int, inputs: int) -> Mapping[str, Spec]:
        return {"weight": (dtype, [outputs, inputs]), "weight_scale": (scale, [outputs, 1])}

    quantize(case, layer, ignore, everything)


def exotic(case: Case) -> None:
    """Methods for experts, which make linears FP8, or that few serve."""
    method = case.pick("w4afp8", "w4afp8", "nvfp4_online", "mxfp8", "mxfp8", "modelopt_fp4")
    config: Json = {"quant_method": method, "activation_scheme": "dynamic"}
    if method == "modelopt_fp4":
        config["quant_method"] = "fp8"
        case.options += ["--quantization", case.pick("modelopt_fp4", "nvfp4_online")]
        config["modules_to_not_convert"] = some(case, GLOBS, most=2)
    if case.chance(0.3):
        config["weight_block_size"] = [128, 128]
    case.config["quantization_config"] = config

    def layer(outputs: int, inputs: int) -> Mapping[str, Spec]:
        scales: Spec = (
            ("U8", [outputs, up(inputs, 32)])
            if method == "mxfp8"
            else ("F32", [up(outputs, 128), up(inputs, 128)])
        )
        return {"weight": ("F8_E4M3", [outputs, inputs]), "weight_scale_inv": scales}

    quantize(case, layer, [], everything)


NAMES: Final = (
    "fp8", "mxfp8", "modelopt", "modelopt_fp8", "modelopt_fp4", "nvfp4_online", "modelopt_mixed",
    "w8a8_int8", "w8a8_fp8", "awq", "awq_marlin", "gptq", "gptq_marlin", "compressed-tensors",
    "compressed_tensors", "w4afp8", "auto-round", "auto-round-int8", "marlin", "moe_wna16", "petit_nvfp4",
    "quark", "bitsandbytes", "FP8", "Modelopt_FP4", "unknown",
)  # fmt: skip


def asked(case: Case) -> None:
    """--quantization over a dense draft."""
    case.options += ["--quantization", case.pick(*NAMES)]


def from_file(case: Case) -> None:
    """--quantization over a draft whose quantization is told by a file of its own."""
    quantizer, method, name = case.pick(
        (gptq, "gptq_marlin", "quantize_config.json"), (awq, "awq_marlin", "quantize_config.json"),
        (awq, "awq", "quant_config.json"), (auto_round, "auto-round", "quantization_config.json"),
    )  # fmt: skip
    quantizer(case)
    case.files[case.pick(name, name, name, f"my_{name}")] = case.config.pop("quantization_config")
    if case.chance(0.1):
        case.files[f"a_{name}"] = {}
    case.options += ["--quantization", method]


def overruled(case: Case) -> None:
    """--quantization over a draft that declares another."""
    case.pick(
        packed_integers, floats, fp8, modelopt_fp8, modelopt_fp4, modelopt_mixed, gptq, awq, auto_round
    )(case)
    case.options += ["--quantization", case.pick(*NAMES)]


def unknown(case: Case) -> None:
    """Declared methods that the engine lacks, or that are not replayed, and declarations that say nothing."""
    case.config["quantization_config"] = case.pick(
        {}, {"quant_method": "exl3", "bits": 6}, {"quant_method": "bitsandbytes", "load_in_4bit": True},
        {"quant_method": ""}, {"quant_method": "quark"}, {"quant_method": "torchao"},
        {"quant_method": "moe_wna16", "bits": 4}, {"quant_method": 5}, {"quant_method": None}, {"bits": 4},
        {"quant_algo": "FP8"}, {"quant_algo": None}, {"quant_algo": "INT4_AWQ"}, [], "fp8",
        {"quant_method": "modelopt"}, {"quant_method": "modelopt", "quant_algo": "W4A8"},
        {"quant_method": "mxfp4"}, {"quant_method": "compressed-tensors"}, {"quant_method": "fp8"},
        {"quant_method": "awq"}, {"quant_method": "gptq"},
    )  # fmt: skip
    if case.chance(0.2):
        case.files["hf_quant_config.json"] = {
            "quantization": case.pick({}, {"quant_algo": "FP8"}, {"quant_algo": "INT8_SQ"}, {"a": 1})
        }


def dense(case: Case) -> None:
    if case.chance(0.15):
        case.files["hf_quant_config.json"] = case.pick(
            {}, {"quantization": {"quant_algo": None}}, {"producer": {"name": "modelopt"}}
        )
    if case.chance(0.1):
        case.config["quantization_config"] = None


METHODS: Final[Mapping[str, tuple[float, Callable[[Case], None]]]] = {
    "dense": (2, dense),
    "ct-int": (2, packed_integers),
    "ct-asym": (1, asymmetric_integers),
    "ct-order": (1, ordered_integers),
    "ct-int8": (1.5, integers),
    "ct-fp8": (1.5, floats),
    "ct-fp8w": (1, weight_only_floats),
    "ct-nvfp4": (1.5, compressed_fp4),
    "ct-mixed": (1.5, mixed),
    "ct-odd-args": (1, odd_arguments),
    "ct-odd": (1, odd_compressed),
    "fp8": (2, fp8),
    "mo-fp8": (1.5, modelopt_fp8),
    "mo-fp4": (2, modelopt_fp4),
    "mo-mxfp8": (0.4, modelopt_mxfp8),
    "mo-mixed": (1.5, modelopt_mixed),
    "gptq": (2, gptq),
    "awq": (1.5, awq),
    "auto-round": (1.5, auto_round),
    "w8a8": (1.5, eight_bits),
    "exotic": (1, exotic),
    "asked": (1, asked),
    "overruled": (1, overruled),
    "from-file": (0.7, from_file),
    "unknown": (0.5, unknown),
}
"""Method -> how often, its quantizer."""
