"""Layouts of compressed-tensors, and configs of it that no quantizer would write."""

from collections.abc import Mapping
from typing import Any

from random_drafts.case import Case, Json, Spec
from random_drafts.quantizing import IGNORED, everything, fp4_layer, group_size, linears, quantize, some, up


def arguments(case: Case, bits: int, kind: str, strategy: str, **more: Any) -> Json:
    """The arguments of compressed-tensors, as short or as long as some version writes them."""
    known: Json = {"num_bits": bits, "type": kind, "strategy": strategy, "symmetric": True, "dynamic": False}
    if case.chance(0.7):
        known |= {"group_size": None, "actorder": None, "block_structure": None, "observer": "minmax"}
        known |= {"observer_kwargs": {}}
    if case.chance(0.3):
        known |= {"scale_dtype": case.pick(None, "bfloat16"), "zp_dtype": None}
    return known | more


def activations(case: Case, kind: str, **more: Any) -> Json:
    return arguments(case, 8, kind, "token", observer=None) | {"dynamic": True} | more


def compressed(case: Case, layout: str, weights: Json, inputs: Json | None = None) -> list[str]:
    """Write a compressed-tensors config with one group; its ignore list comes back."""
    ignore = some(case, IGNORED)
    targets = case.pick(
        *[["Linear"]] * 10, ["re:.*"], ["re:.*proj", "fc"],
        ["re:.*proj$", "re:.*fc$", "re:.*head$", "re:.*w2$"], ["re:.*self_attn.*", "re:.*mlp.*", "fc"],
        ["QKVParallelLinear", "MergedColumnParallelLinear", "RowParallelLinear"],
        ["re:.*(q|k|v|o|gate|up|down|g)_proj$", "Linear"], ["linear"],
        ["ParallelLinear", "ReplicatedLinear"], ["re:.*_proj$", "Linear"], [],
        [name for name in linears(case) if case.chance(0.95)],
        [*(name for name in linears(case) if case.chance(0.9)), "Linear"],
    )  # fmt: skip
    group: Json = {
        "targets": targets,
        "weights": weights,
        "input_activations": inputs,
        "output_activations": None,
    }
    config: Json = {
        "quant_method": "compressed-tensors",
        "config_groups": {"group_0": group},
        "ignore": ignore,
    }
    match case.rng.randrange(6):
        case 0:
            group["format"] = layout
            config["format"] = case.pick("mixed-precision", None, layout)
        case 1:
            config["format"] = layout
        case 2:
            group["format"] = layout
        case _:
            group["format"] = config["format"] = layout
    config |= {"quantization_status": "compressed", "kv_cache_scheme": None}
    if case.chance(0.15):
        config["kv_cache_scheme"] = case.pick(
            arguments(case, 8, "float", "tensor"), arguments(case, 8, "int", "tensor"), {},
            arguments(case, 8, "float", "tensor", dynamic=True),
            {"type": "float", "num_bits": 8, "strategy": "tensor"},
        )  # fmt: skip
    if case.chance(0.1):
        config["sparsity_config"] = case.pick(
            {}, {"format": "dense"},
            {"format": "dense", "sparsity_structure": "unstructured", "targets": ["Linear"]},
            {"format": "sparse-24-bitmask", "sparsity_structure": "2:4", "targets": ["Linear"]},
            {"format": "dense", "sparsity_structure": "2:4", "targets": ["re:.*mlp.*"]}, {"ignore": []},
        )  # fmt: skip
    if case.chance(0.1):
        config["packed_modules_mapping"] = case.pick(
            {}, None, {"qkv_proj": ["q_proj", "k_proj", "v_proj"]},
            {"gate_up_proj": ["gate_proj", "up_proj"]},
            {"qkv_proj": ["q_proj", "k_proj", "v_proj"], "gate_up_proj": ["gate_proj", "up_proj"]},
        )  # fmt: skip
    if case.chance(0.1):
        config |= {"global_compression_ratio": None, "transform_config": {}, "version": "0.17.0"}
    key = "compression_config" if case.chance(0.05) else "quantization_config"
    case.config[key] = config
    return ignore


def packed_integers(case: Case, actorder: Any = None, symmetric: bool = True) -> None:
    bits, strategy = case.pick(4, 8), "group" if actorder else case.pick("group", "group", "channel")
    size = group_size(case, 32, 64, 128) if strategy == "group" else None
    weights = arguments(case, bits, "int", strategy, group_size=size, symmetric=symmetric)
    if actorder is not None:
        weights["actorder"] = actorder
    ignore = compressed(case, "pack-quantized", weights)
    scale, whole = case.pick("BF16", "BF16", "F16", "F32"), case.pick("I64", "I64", "I32")

    def layer(outputs: int, inputs: int) -> Mapping[str, Spec]:
        groups = up(inputs, size) if size else 1
        found: dict[str, Spec] = {
            "weight_packed": ("I32", [outputs, up(inputs * bits, 32)]),
            "weight_scale": (scale, [outputs, groups]),
            "weight_shape": (whole, [2]),
        }
        if not symmetric:
            found["weight_zero_point"] = ("I32", [up(outputs * bits, 32), groups])
        if actorder in ("group", "dynamic", True):
            found["weight_g_idx"] = ("I32", [inputs])
        return found

    quantize(case, layer, ignore, lambda _, inputs: size is None or inputs % size == 0)


def asymmetric_integers(case: Case) -> None:
    packed_integers(case, symmetric=False)


def ordered_integers(case: Case) -> None:
    packed_integers(case, case.pick("group", "weight", "static", "dynamic", True, False), case.chance(0.8))


def integers(case: Case) -> None:
    """INT8 weights and activations."""
    strategy, static = case.pick("channel", "channel", "tensor"), case.chance(0.4)
    symmetric = case.chance(0.6)
    inputs = activations(case, "int", symmetric=symmetric)
    if static:
        inputs |= {"strategy": "tensor", "dynamic": False}
    ignore = compressed(case, "int-quantized", arguments(case, 8, "int", strategy), inputs)
    scale, scalar = case.pick("BF16", "F32"), case.pick([1], [1], [])

    def layer(outputs: int, inputs: int) -> Mapping[str, Spec]:
        found: dict[str, Spec] = {"weight": ("I8", [outputs, inputs])}
        found["weight_scale"] = (scale, [outputs, 1] if strategy == "channel" else scalar)
        if static:
            found["input_scale"] = (scale, scalar)
            if not symmetric:
                found["input_zero_point"] = ("I8", scalar)
        return found

    quantize(case, layer, ignore, everything)


def floats(case: Case, weights_alone: bool = False) -> None:
    """FP8 weights, with FP8 activations or without."""
    strategy = case.pick("channel", "channel", "tensor", "block")
    static = not weights_alone and strategy != "block" and case.chance(0.3)
    weights = arguments(case, 8, "float", strategy)
    if strategy == "block":
        weights["block_structure"] = case.pick([128, 128], [128, 128], "128x128", [64, 32])
    inputs = None if weights_alone else activations(case, "float")
    if inputs and strategy == "block":
        inputs |= {"strategy": "group", "group_size": 128}
    if inputs and static:
        inputs |= {"strategy": "tensor", "dynamic": False}
    ignore = compressed(
        case, case.pick("float-quantized", "float-quantized", "naive-quantized"), weights, inputs
    )
    scale, scalar = case.pick("BF16", "F32"), case.pick([1], [1], [])
    rows, columns = (64, 32) if weights.get("block_structure") == [64, 32] else (128, 128)

    def layer(outputs: int, inputs: int) -> Mapping[str, Spec]:
        scales = {
            "channel": [outputs, 1],
            "tensor": scalar,
            "block": [up(outputs, rows), up(inputs, columns)],
        }
        found: dict[str, Spec] = {
            "weight": ("F8_E4M3", [outputs, inputs]),
            "weight_scale": (scale, scales[strategy]),
        }
        return found | ({"input_scale": (scale, scalar)} if static else {})

    quantize(case, layer, ignore, everything)


def weight_only_floats(case: Case) -> None:
    floats(case, weights_alone=True)


def compressed_fp4(case: Case) -> None:
    """NVFP4 of weights alone, or of activations too."""
    both = case.chance(0.4)
    weights = arguments(case, 4, "float", "tensor_group", group_size=16)
    inputs = arguments(case, 4, "float", "tensor_group", group_size=16, dynamic="local") if both else None
    ignore = compressed(case, "nvfp4-pack-quantized", weights, inputs)

    def layer(outputs: int, inputs: int) -> Mapping[str, Spec]:
        found = fp4_layer(outputs, inputs, "weight_packed", "weight_global_scale", [1])
        return found | ({"input_global_scale": ("F32", [1])} if both else {})

    quantize(case, layer, ignore, lambda _, inputs: inputs % 16 == 0)


def mixed(case: Case) -> None:
    """Two config groups, each with its own targets and layout."""
    size = group_size(case, 32, 64, 128)
    attention = case.pick(["re:.*self_attn.*", "re:.*fc$"], ["Linear"], ["re:.*[qkvo]_proj$", "fc"])
    mlp = case.pick(["re:.*mlp.*"], ["re:.*(gate|up|down)_proj$"], ["re:.*gate_up_proj$", "re:.*down_proj$"])
    groups: Json = {
        "group_0": {
            "targets": attention,
            "weights": arguments(case, 8, "float", "channel"),
            "input_activations": None,
        },
        "group_1": {"targets": mlp, "weights": arguments(case, 4, "int", "group", group_size=size)},
    }
    layouts = ("float-quantized", "pack-quantized")
    for group, layout in zip(groups.values(), layouts, strict=True):
        if case.chance(0.9):
            group["format"] = layout
    if case.chance(0.3):
        groups = dict(reversed(groups.items()))
    ignore = some(case, IGNORED, most=2)
    case.config["quantization_config"] = {
        "quant_method": "compressed-tensors", "format": case.pick("mixed-precision", *layouts),
        "ignore": ignore, "config_groups": groups,
    }  # fmt: skip

    def floating(outputs: int, inputs: int) -> Mapping[str, Spec]:
        return {"weight": ("F8_E4M3", [outputs, inputs]), "weight_scale": ("F32", [outputs, 1])}

    def packed(outputs: int, inputs: int) -> Mapping[str, Spec]:
        packed_shape, scales = [outputs, up(inputs, 8)], [outputs, up(inputs, size)]
        return {
            "weight_packed": ("I32", packed_shape), "weight_scale": ("BF16", scales),
            "weight_shape": ("I64", [2]),
        }  # fmt: skip

    quantize(case, floating, [*ignore, "re:.*mlp.*"], everything)
    quantize(case, packed, [*ignore, "re:.*self_attn.*", "fc"], lambda _, inputs: inputs % size == 0)


def odd_arguments(case: Case) -> None:
    """A valid compressed-tensors config in which some argument is spelled or typed in another way."""
    case.pick(packed_integers, integers, floats, compressed_fp4)(case)
    declared = case.declared
    group = declared["config_groups"]["group_0"]
    side = case.pick("weights", "weights", "input_activations")
    for _ in range(case.pick(1, 1, 2)):
        if not isinstance(group[side], dict):
            side = "weights"
        key, value = case.pick(
            ("strategy", None), ("strategy", "GROUP"), ("strategy", "token"), ("strategy", "attn_head"),
            ("strategy", "x"), ("num_bits", "4"), ("num_bits", 4.0), ("num_bits", 3), ("num_bits", None),
            ("num_bits", True), ("num_bits", 2), ("type", "INT"), ("type", None), ("type", "float"),
            ("symmetric", "true"), ("symmetric", 0), ("symmetric", None), ("symmetric", "maybe"),
            ("group_size", -1), ("group_size", "32"), ("group_size", 0), ("group_size", 32.0),
            ("group_size", 32.5), ("group_size", -2), ("dynamic", "local"), ("dynamic", True),
            ("dynamic", 1), ("dynamic", "LOCAL"), ("dynamic", "yes"), ("dynamic", None),
            ("actorder", "weight"), ("actorder", False), ("actorder", "Group"), ("actorder", 1),
            ("actorder", "no"), ("block_structure", "128x128"), ("block_structure", [128]),
            ("block_structure", "a"), ("scale_dtype", "float16"), ("scale_dtype", "torch.x"),
            ("scale_dtype", 5), ("zp_dtype", "int8"), ("zp_dtype", "zzz"), ("observer", 5),
            ("observer", None), ("observer_kwargs", None), ("observer_kwargs", []),
            ("averaging_constant", 0.01), ("is_mx", True),
        )  # fmt: skip
        group[side][key] = value
        if case.chance(0.2):
            del group[side][key]


def odd_compressed(case: Case) -> None:
    """A valid compressed-tensors config in which some other key is of another type or missing."""
    case.pick(packed_integers, integers, floats, compressed_fp4)(case)
    declared = case.declared
    group = declared["config_groups"]["group_0"]
    where, key, value = case.pick(
        (declared, "ignore", None), (declared, "ignore", "fc"), (declared, "ignore", {"fc": 1}),
        (declared, "ignore", [5]), (declared, "format", 5), (declared, "format", "marlin-24"),
        (declared, "format", "int-quantized"), (declared, "format", "dense"),
        (group, "format", "pack-quantized"), (group, "format", "FLOAT-QUANTIZED"),
        (declared, "config_groups", {}), (declared, "config_groups", None), (declared, "config_groups", []),
        (group, "targets", None), (group, "targets", "Linear"), (group, "targets", ["Linear", 5]),
        (group, "weights", None), (group, "weights", {}), (group, "weights", []),
        (group, "input_activations", []), (group, "input_activations", {}),
        (group, "input_activations", {"num_bits": 8}), (declared, "kv_cache_scheme", []),
        (declared, "kv_cache_scheme", 1), (declared, "kv_cache_scheme", "fp8"),
        (declared, "sparsity_config", []), (declared, "sparsity_config", 5),
        (declared, "sparsity_config", {"format": "odd", "targets": ["Linear"]}),
        (declared, "quant_method", "Compressed-Tensors"), (declared, "quant_method", "compressed_tensors"),
        (declared, "linear_fp8_config", {"quant_method": "fp8"}),
        (declared["config_groups"], "group_1", {"targets": ["re:.*mlp.*"], "weights": {"num_bits": 8}}),
        (declared["config_groups"], "group_1", {**group, "targets": ["fc"], "format": "x"}),
    )  # fmt: skip
    where[key] = value
    if case.chance(0.15):
        del where[key]
