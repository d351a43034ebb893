"""compressed-tensors configs of many groups: a scheme for each kind of linear, or for each layer."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from random_drafts.case import Case, Json, Spec
from random_drafts.compressed import activations, arguments
from random_drafts.quantizing import SMALL, group_size, linears, some, up
from random_drafts.spellings import spelled

Layer = Callable[[int, int], Mapping[str, Spec]]


@dataclass(frozen=True, slots=True)
class Layout:
    """How one group stores a linear: its format, its two arguments, its tensors, and what inputs fit."""

    form: str
    weights: Json
    inputs: Json | None
    layer: Layer
    multiple: int = 1


def packed(case: Case) -> Layout:
    bits, symmetric = case.pick(4, 8), case.chance(0.7)
    order = case.pick(None, None, None, "group", "weight", "static", "dynamic")
    size = None if case.chance(0.25) and order is None else group_size(case, 32, 64, 128)
    strategy = "channel" if size is None else "group"
    weights = arguments(case, bits, "int", strategy, group_size=size, symmetric=symmetric)
    if order is not None:
        weights["actorder"] = order
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
        return found | ({"weight_g_idx": ("I32", [inputs])} if order in ("group", "dynamic") else {})

    return Layout("pack-quantized", weights, None, layer, size or 1)


def eight_bit_integers(case: Case) -> Layout:
    strategy, static = case.pick("channel", "channel", "tensor"), case.chance(0.3)
    inputs = activations(case, "int", symmetric=case.chance(0.8))
    if static:
        inputs |= {"strategy": "tensor", "dynamic": False}
    scale = case.pick("BF16", "F32")

    def layer(outputs: int, inputs: int) -> Mapping[str, Spec]:
        shape = [outputs, 1] if strategy == "channel" else [1]
        found: dict[str, Spec] = {"weight": ("I8", [outputs, inputs]), "weight_scale": (scale, shape)}
        return found | ({"input_scale": (scale, [1])} if static else {})

    return Layout("int-quantized", arguments(case, 8, "int", strategy), inputs, layer)


def eight_bit_floats(case: Case) -> Layout:
    strategy = case.pick("channel", "channel", "tensor", "block")
    weights = arguments(case, 8, "float", strategy)
    if strategy == "block":
        weights["block_structure"] = [128, 128]
    inputs = None if case.chance(0.4) else activations(case, "float")
    static = inputs is not None and strategy != "block" and case.chance(0.3)
    if inputs is not None and static:
        inputs |= {"strategy": "tensor", "dynamic": False}
    if inputs is not None and strategy == "block":
        inputs |= {"strategy": "group", "group_size": 128}
    scale = case.pick("BF16", "F32")

    def layer(outputs: int, inputs: int) -> Mapping[str, Spec]:
        shapes = {"channel": [outputs, 1], "tensor": [1], "block": [up(outputs, 128), up(inputs, 128)]}
        found: dict[str, Spec] = {
            "weight": ("F8_E4M3", [outputs, inputs]),
            "weight_scale": (scale, shapes[strategy]),
        }
        return found | ({"input_scale": (scale, [1])} if static else {})

    return Layout(case.pick("float-quantized", "float-quantized", "naive-quantized"), weights, inputs, layer)


def four_bit_floats(case: Case) -> Layout:
    both = case.chance(0.4)
    weights = arguments(case, 4, "float", "tensor_group", group_size=16)
    inputs = arguments(case, 4, "float", "tensor_group", group_size=16, dynamic="local") if both else None

    def layer(outputs: int, inputs: int) -> Mapping[str, Spec]:
        found: dict[str, Spec] = {
            "weight_packed": ("U8", [outputs, inputs // 2]),
            "weight_scale": ("F8_E4M3", [outputs, inputs // 16]),
            "weight_global_scale": ("F32", [1]),
        }
        return found | ({"input_global_scale": ("F32", [1])} if both else {})

    return Layout("nvfp4-pack-quantized", weights, inputs, layer, 16)


def microscaled_floats(case: Case) -> Layout:
    """MXFP4: groups of 32 with an exponent for a scale."""
    weights = arguments(case, 4, "float", "group", group_size=32, scale_dtype="torch.uint8")

    def layer(outputs: int, inputs: int) -> Mapping[str, Spec]:
        return {
            "weight_packed": ("U8", [outputs, inputs // 2]),
            "weight_scale": ("U8", [outputs, inputs // 32]),
        }

    return Layout("mxfp4-pack-quantized", weights, None, layer, 32)


LAYOUTS: Final = (packed, packed, packed, eight_bit_integers, eight_bit_floats, eight_bit_floats,
                  four_bit_floats, four_bit_floats, microscaled_floats)  # fmt: skip

KINDS: Final = (
    (r".*\.self_attn\..*", ("re:.*self_attn.*", r"re:.*self_attn\.(q|k|v|o|qkv)_proj$", "re:.*[qkvo]_proj$")),
    (r".*\.mlp\..*", ("re:.*mlp.*", r"re:.*\.mlp\.(gate|up|down|gate_up)_proj$", "re:.*(gate|up|down)_proj")),
    (r"(?:model\.)?fc", ("fc", "re:.*fc$", "re:^fc$", r"re:(?:.*[.])?fc$", "model.fc")),
    (r".*\.o_proj", ("re:.*o_proj$", "o_proj")),
    (r".*\.down_proj", ("re:.*down_proj$", "down_proj", "RowParallelLinear")),
)
"""A kind of linear, and targets that a quantizer may name it by."""


def by_kind(case: Case) -> None:
    """A group for each of some kinds of linears, and perhaps one for what is left."""
    kinds = case.rng.sample(KINDS, case.pick(2, 2, 3, 4))
    groups = [(pattern, list({case.rng.choice(targets) for _ in range(2)})) for pattern, targets in kinds]
    if case.chance(0.5):
        groups.append((".*", ["Linear"]))
    if case.chance(0.2):
        case.rng.shuffle(groups)
    _quantized(case, groups)


def by_layer(case: Case) -> None:
    """A group for each layer, by its number, and perhaps one for what is left."""
    groups: list[tuple[str, list[str]]] = []
    for layer in range(case.sizes.layers):
        at = rf"(?:model\.)?layers\.{layer}\..*"
        groups.append((at, [case.pick(rf"re:.*layers\.{layer}\..*", rf"re:layers\.{layer}\.", "re:" + at)]))
    rest = case.pick([], [".*"], [".*"], ["(?:model\\.)?fc"])
    groups += [(pattern, ["Linear"] if pattern == ".*" else ["re:.*fc$"]) for pattern in rest]
    _quantized(case, groups)


def by_name(case: Case) -> None:
    """Groups that name every linear in full, by its own or by its fused name."""
    names = [name for name in linears(case) if not SMALL.search(name)]
    case.rng.shuffle(names)
    cut = case.rng.randrange(len(names) + 1) if names else 0
    groups = []
    for part in (names[:cut], names[cut:]):
        pattern = "|".join(map(re.escape, part)) or "nothing"
        groups.append((pattern, [target for name in part for target in spelled(case, name)]))
    _quantized(case, groups)


def _quantized(case: Case, groups: Iterable[tuple[str, list[str]]]) -> None:
    """Write the config, and store each linear as the first group that its pattern matches does."""
    made = [(pattern, targets, case.rng.choice(LAYOUTS)(case)) for pattern, targets in groups]
    if case.chance(0.3) and made:
        made = [
            (pattern, targets, made[0][2]) for pattern, targets, _ in made
        ]  # one scheme in several groups
    kept = case.rng.sample(linears(case), min(len(linears(case)), case.pick(0, 0, 1, 2, 4)))
    ignore = [entry for name in kept for entry in spelled(case, name)] + some(case, IGNORED_KINDS, most=2)
    config_groups: dict[str, Any] = {}
    for number, (_, targets, layout) in enumerate(made):
        group: Json = {
            "targets": targets,
            "weights": layout.weights,
            "input_activations": layout.inputs,
            "output_activations": None,
        }
        if case.chance(0.9):
            group["format"] = layout.form
        config_groups[case.pick(f"group_{number}", f"group_{number}", f"{number}_{layout.form}")] = group
    forms = {layout.form for *_, layout in made}
    case.config["quantization_config"] = {
        "quant_method": "compressed-tensors",
        "format": "mixed-precision" if len(forms) > 1 or case.chance(0.1) else next(iter(forms), "dense"),
        "ignore": ignore,
        "config_groups": config_groups,
        "quantization_status": "compressed",
        "kv_cache_scheme": arguments(case, 8, "float", "tensor") if case.chance(0.1) else None,
    }
    left = set(kept) | ({name for name in linears(case) if SMALL.search(name)} if case.chance(0.9) else set())
    for module in linears(case):
        outputs, inputs = case.tensors[f"{module}.weight"][1]
        found = next((layout for pattern, _, layout in made if re.fullmatch(pattern, module)), None)
        if module in left or found is None or inputs % found.multiple:
            continue
        del case.tensors[f"{module}.weight"]
        case.tensors |= {f"{module}.{name}": spec for name, spec in found.layer(outputs, inputs).items()}


IGNORED_KINDS: Final = (
    "re:.*kernel_projection$", "re:.*candidate_selector.*", "re:.*markov.*", "re:.*norm.*", "lm_head",
    "re:.*lilicorr.*", "re:.*hidden_projection$", "re:.*embed.*", "re:.*_conv.*", "re:.*confidence.*",
)  # fmt: skip
