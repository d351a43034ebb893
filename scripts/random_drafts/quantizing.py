"""What every quantizer does: choose the linears, replace their weights."""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from random_drafts.case import Case, Spec

IGNORED: Final = (
    r"re:.*self_attn\.(q|k|v)_proj$", r"re:.*self_attn\.q_proj$", "re:.*self_attn.*", "re:.*mlp.*",
    "re:.*gate_proj", "re:.*qkv_proj$", "re:.*o_proj$", "re:.*gate_up_proj", "re:qkv_proj", "re:self_attn",
    "re:^fc$", "re:.*fc$", r"re:.*\.fc$", r"re:layers\.0\..*", r"re:.*layers\.1\.self_attn\.(q|k|v)_proj",
    "re:.*norm.*", "re:.*lilicorr.*", "re:.*kernel_projection$", "re:.*candidate_selector.*",
    "re:.*markov_head.*", "re:(", "fc", "model.fc", "lm_head", "o_proj", "self_attn.o_proj", "down_proj",
    "qkv_proj", "gate_up_proj", "layers.0.mlp.down_proj", "mlp", "q_proj", "model.layers.0.self_attn.o_proj",
    "layers.0.self_attn.qkv_proj", "layers.0.self_attn", "g_proj", "layers.0", "embed_tokens",
    "markov_head.markov_w2", "lilicorr", "lilicorr.context_proj", "Linear", "ReplicatedLinear", "",
)  # fmt: skip


GLOBS: Final = (
    "fc", "*fc", "fc*", "layers.0*", "layers.0.self_attn*", "*self_attn*", "*qkv_proj", "*q_proj", "*k_proj",
    "*v_proj", "candidate_selector*", "*kernel_projection", "lm_head", "layers.*.mlp.down_proj", "o_proj",
    "qkv_proj", "*mlp*", "model.layers.0.self_attn.o_proj", "embed_tokens", "markov_head*", "lilicorr*", "*",
    "gate_up_proj", "layers", "*.gate_proj", "*.up_proj", "self_attn", "layers.0.self_attn.q_proj",
    "model.fc",
)  # fmt: skip


SMALL: Final = re.compile(
    "candidate|kernel_proj|lilicorr|markov|confidence|prefix_gru|embed_proj|embed_tokens|g_proj"
)
"""Linears that most quantizers leave dense."""


Layer = Callable[[int, int], Mapping[str, Spec]]
"""(outputs, inputs) -> the tensors of a quantized linear by their own names."""


def linears(case: Case) -> list[str]:
    """The modules whose weight is a matrix."""
    weights = (
        name for name, (_, shape) in case.tensors.items() if name.endswith(".weight") and len(shape) == 2
    )
    return [
        name.removesuffix(".weight")
        for name in weights
        if "embed_tokens" not in name and "markov_w1" not in name
    ]


def left_dense(entry: str, module: str) -> bool:
    """Whether a quantizer takes `entry` for `module`: as a regex, a glob, or the last parts of the name."""
    try:
        if entry.startswith("re:"):
            return re.match(entry[3:], module) is not None
    except re.error:
        return False
    if "*" in entry:
        return re.fullmatch(entry.replace(".", r"\.").replace("*", ".*"), module) is not None
    return bool(entry) and f".{module}".endswith(f".{entry}")


def quantize(case: Case, layer: Layer, ignore: Iterable[str], fits: Callable[[int, int], bool]) -> None:
    """Replace the weights of the linears that are not ignored, are large and fit."""
    small = case.chance(0.15)
    entries = list(ignore)
    for module in linears(case):
        outputs, inputs = case.tensors[f"{module}.weight"][1]
        kept = any(left_dense(entry, module) for entry in entries) or not fits(outputs, inputs)
        if kept or (SMALL.search(module) and not small and not module.endswith("markov_w2")):
            continue
        if module.endswith("markov_w2") and "has_embed_tokens" not in case.config and not small:
            continue
        del case.tensors[f"{module}.weight"]
        case.tensors |= {f"{module}.{name}": spec for name, spec in layer(outputs, inputs).items()}


def some(case: Case, entries: tuple[str, ...], most: int = 4) -> list[str]:
    return case.rng.sample(entries, case.rng.choice([0, 0, 1, 2, most]))


def group_size(case: Case, *sizes: int) -> int:
    """A group size that divides the inputs of the layers, or nearly always so."""
    s = case.sizes
    inputs = math.gcd(s.hidden, s.intermediate, s.heads * s.head_dim)
    fitting = [size for size in sizes if inputs % size == 0]
    return int(case.rng.choice(fitting)) if fitting and case.chance(0.9) else int(case.rng.choice(sizes))


def up(number: int, divisor: int) -> int:
    return -(-number // divisor)


def everything(outputs: int, inputs: int) -> bool:
    del outputs, inputs
    return True


def fp4_layer(outputs: int, inputs: int, weight: str, scalar: str, shape: list[int]) -> dict[str, Spec]:
    return {
        weight: ("U8", [outputs, inputs // 2]),
        "weight_scale": ("F8_E4M3", [outputs, inputs // 16]),
        scalar: ("F32", shape),
    }
