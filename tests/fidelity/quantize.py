"""Writes a dense draft and the same in a quantized layout, rounded to the nearest, or with a fault in it."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from compressed_tensors.compressors import (
    NaiveQuantizationCompressor,
    NVFP4PackedCompressor,
    PackedQuantizationCompressor,
)
from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
from compressed_tensors.quantization.utils import calculate_qparams, generate_gparam
from safetensors.torch import load_file, save_file

Tensors = dict[str, torch.Tensor]
Fault = Callable[[Tensors], None]
"""Changes a quantized draft's tensors in place."""

COMPRESSORS = {
    "pack-quantized": PackedQuantizationCompressor,
    "nvfp4-pack-quantized": NVFP4PackedCompressor,
    "float-quantized": NaiveQuantizationCompressor,
    "int-quantized": NaiveQuantizationCompressor,
}

BY_TOKEN = {"strategy": "token", "dynamic": True}
FP8_BY_TOKEN = BY_TOKEN | {"type": "float"}
FP8_BY_GROUP = {"type": "float", "strategy": "group", "group_size": 128, "dynamic": True}

Layout = tuple[str, dict[str, Any], dict[str, Any] | None]

LAYOUTS: Mapping[str, Layout] = {
    "int8 by channel": ("pack-quantized", {"num_bits": 8, "strategy": "channel"}, None),
    "int8 by 128": ("pack-quantized", {"num_bits": 8, "strategy": "group", "group_size": 128}, None),
    "int8 by 128, asymmetric": (
        "pack-quantized",
        {"num_bits": 8, "strategy": "group", "group_size": 128, "symmetric": False},
        None,
    ),
    "int8 by channel, inputs too": ("int-quantized", {"strategy": "channel"}, BY_TOKEN),
    "int4 by 128": ("pack-quantized", {"num_bits": 4, "strategy": "group", "group_size": 128}, None),
    "int4 by 32": ("pack-quantized", {"num_bits": 4, "strategy": "group", "group_size": 32}, None),
    "int4 by 128, asymmetric": (
        "pack-quantized",
        {"num_bits": 4, "strategy": "group", "group_size": 128, "symmetric": False},
        None,
    ),
    "int4 by 32, asymmetric": (
        "pack-quantized",
        {"num_bits": 4, "strategy": "group", "group_size": 32, "symmetric": False},
        None,
    ),
    "fp8 by tensor": ("float-quantized", {"type": "float", "strategy": "tensor"}, None),
    "fp8 by channel": ("float-quantized", {"type": "float", "strategy": "channel"}, None),
    "fp8 by channel, inputs too": ("float-quantized", {"type": "float", "strategy": "channel"}, FP8_BY_TOKEN),
    "fp8 by block": (
        "float-quantized",
        {"type": "float", "strategy": "block", "block_structure": [128, 128]},
        FP8_BY_GROUP,
    ),
    "nvfp4": (
        "nvfp4-pack-quantized",
        {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16},
        None,
    ),
}
"""Name -> format of compressed-tensors, arguments of the weights, of the inputs."""

QUANTIZED = re.compile(r"(fc|layers\.\d+\.(self_attn|mlp)\.\w+_proj)\.weight")

FUSED = (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"))


def write_dense(folder: Path, config: Mapping[str, Any], tensors: Mapping[str, torch.Tensor]) -> Path:
    """A checkpoint of those tensors in bfloat16."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    save_file(
        {name: value.bfloat16().contiguous() for name, value in tensors.items()}, folder / "model.safetensors"
    )
    return folder


def write_quantized(folder: Path, dense: Path, layout: str, fault: Fault | None = None) -> Path:
    """The dense checkpoint with the linears of its layers and `fc` in that layout."""
    form, weights, inputs = LAYOUTS[layout]
    args = QuantizationArgs(**weights)
    stored: Tensors = {}
    tensors = load_file(dense / "model.safetensors")
    for name, value in tensors.items():
        if not QUANTIZED.fullmatch(name):
            stored[name] = value
            continue
        module = name.removesuffix(".weight")
        together = [tensors[f"{other}.weight"].float() for other in _fused_with(module)]
        for own, part in compressed(form, args, value.float(), together).items():
            stored[f"{module}.{own}"] = part.contiguous()
    if fault is not None:
        fault(stored)
    folder.mkdir(parents=True)
    save_file(stored, folder / "model.safetensors")
    config = json.loads((dense / "config.json").read_text())
    group = {"targets": ["Linear"], "weights": weights, "input_activations": inputs, "format": form}
    ignored = ["re:.*candidate_selector.*", "re:.*kernel_projection$"]
    config["quantization_config"] = {
        "quant_method": "compressed-tensors",
        "format": form,
        "config_groups": {"all": group},
        "ignore": ignored,
    }
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def compressed(form: str, args: Any, weight: torch.Tensor, together: list[torch.Tensor]) -> Tensors:
    """What the format stores of a weight; of NVFP4 the matrices `together` share a global scale."""
    extra = {}
    if args.strategy == "tensor_group":
        largest = torch.stack([value.abs().max() for value in together]).max()
        extra["global_scale"] = generate_gparam(-largest, largest)
    groups = _grouped(weight, args)
    scale, zero = calculate_qparams(groups.amin(-1), groups.amax(-1), args, **extra)
    if args.strategy == "tensor":
        scale, zero = scale.reshape(1), zero.reshape(1)
    if form == "pack-quantized":
        scale = scale.bfloat16()
    state = {"weight": weight, "weight_scale": scale, "weight_zero_point": zero}
    if extra:
        state["weight_global_scale"] = extra["global_scale"].reshape(1)
    scheme = QuantizationScheme(targets=["Linear"], weights=args)
    found: Tensors = COMPRESSORS[form].compress(state, scheme)
    if args.symmetric:
        found.pop("weight_zero_point", None)
    return found


def _grouped(weight: torch.Tensor, args: Any) -> torch.Tensor:
    """The weight with an axis for each group that has a scale, the group's numbers last."""
    if args.strategy == "tensor":
        return weight.reshape(1, 1, -1)
    if args.strategy == "block":
        rows, columns = args.block_structure
        blocks = weight.unflatten(0, (-1, rows)).unflatten(2, (-1, columns))
        return blocks.transpose(1, 2).flatten(2)
    return weight.unflatten(1, (-1, args.group_size or weight.shape[1]))


def _fused_with(module: str) -> list[str]:
    stem, _, last = module.rpartition(".")
    names = next((names for names in FUSED if last in names), (last,))
    return [f"{stem}.{name}" if stem else name for name in names]
