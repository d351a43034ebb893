"""The quantization config that the stored tensors were written by, as far as they tell it.

Names, dtypes and shapes tell the layout, the bits and the groups. What they do not
tell are the activations: those are said as the layout's common export has them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dflash_audit.diagnosis.stored import State, Stored, stored_in
from dflash_audit.diagnosis.stored_layout import WORD
from dflash_audit.sources.checkpoint import Checkpoint, Tensor
from dflash_audit.tree import Modules

BLOCK: Final = 128
"""The block of nearly every block-quantized export, tried before what the shapes divide into."""


@dataclass(frozen=True, slots=True)
class Part:
    """A quantized module on disk, with the outputs and inputs of its weight."""

    stored: Stored
    outputs: int
    inputs: int

    def leaf(self, *names: str) -> Tensor | None:
        return next((self.stored.leaves[name] for name in names if name in self.stored.leaves), None)


@dataclass(frozen=True, slots=True)
class Scheme:
    """A whole `quantization_config` with an empty list under `list_key`, and how it was told."""

    config: Mapping[str, Any]
    list_key: str
    why: str
    doubt: str | None = None


def quantized_parts(modules: Modules, checkpoint: Checkpoint) -> list[Part]:
    """What is quantized on disk of the linears of a tree that is built dense."""
    found = []
    for name, parts in stored_in(modules, checkpoint.tensors).items():
        weight = next((p for p in modules[name].parameters if p.name == "weight"), None)
        if weight is None or len(weight.shape) != 2:
            continue
        found += [
            Part(part, _outputs(part), weight.shape[1]) for part in parts if part.state is State.QUANTIZED
        ]
    return found


def _outputs(part: Stored) -> int:
    """Rows of a weight; of GPTQ's and AWQ's, which is not read here, they would be columns."""
    weight = part.weight
    return weight.shape[0] if weight is not None and weight.shape else 0


def schemes(parts: Sequence[Part]) -> Iterator[Scheme]:
    """The configs that fit all of the parts, the likeliest first; none for parts of several layouts."""
    if not parts or not all(part.outputs and part.inputs for part in parts):
        return
    for fits, write in LAYOUTS:
        if all(fits(part) for part in parts):
            yield from write(parts)


def _weight(part: Part, leaf: str, *dtypes: str) -> bool:
    tensor = part.leaf(leaf)
    return tensor is not None and tensor.dtype in dtypes and len(tensor.shape) == 2


def _one(values: Iterator[int | None]) -> int | None:
    """What all agree on."""
    found = {*values}
    return found.pop() if len(found) == 1 else None


def _columns(tensor: Tensor | None) -> int:
    return tensor.shape[1] if tensor is not None and len(tensor.shape) == 2 else 1


def _quotient(whole: int, part: int) -> int | None:
    return whole // part if part and whole % part == 0 else None


def _group(parts: Sequence[Part], leaf: str) -> int | None:
    """Inputs of a group, -1 for one over all; None where the parts do not agree.

    A part with a single column may be a group that is as wide as its inputs.
    """
    several = {
        _quotient(part.inputs, _columns(part.leaf(leaf))) for part in parts if _columns(part.leaf(leaf)) > 1
    }
    if not several:
        return -1
    size = several.pop()
    single = [part.inputs for part in parts if _columns(part.leaf(leaf)) == 1]
    return size if not several and all(inputs == size for inputs in single) else None


def _compressed_tensors(
    format_: str, weights: Mapping[str, Any], inputs: Mapping[str, Any] | None
) -> dict[str, Any]:
    group = {"targets": ["Linear"], "weights": dict(weights), "input_activations": inputs}
    return {
        "quant_method": "compressed-tensors",
        "quantization_status": "compressed",
        "format": format_,
        "config_groups": {"group_0": group},
        "ignore": [],
    }


def _packed(parts: Sequence[Part]) -> Iterator[Scheme]:
    bits = _one(_quotient(WORD * _columns(part.leaf("weight_packed")), part.inputs) for part in parts)
    group = _group(parts, "weight_scale")
    zeros = {"weight_zero_point" in part.stored.leaves for part in parts}
    ordered = {"weight_g_idx" in part.stored.leaves for part in parts}
    if bits is None or group is None or len(zeros) != 1 or len(ordered) != 1:
        return
    weights: dict[str, Any] = {"num_bits": bits, "type": "int", "symmetric": not zeros.pop()}
    weights |= {"strategy": "channel"} if group == -1 else {"strategy": "group", "group_size": group}
    weights |= {"actorder": "group"} if ordered.pop() else {}
    by = "by row" if group == -1 else f"in groups of {group}"
    why = f"{len(parts)} weights are packed integers of {bits} bits, {by}, by their shapes."
    yield Scheme(_compressed_tensors("pack-quantized", weights, None), "ignore", why)


FP4: Final = {"num_bits": 4, "type": "float", "symmetric": True, "strategy": "tensor_group"}


def _nvfp4(parts: Sequence[Part]) -> Iterator[Scheme]:
    group = _group(parts, "weight_scale")
    static = {"input_global_scale" in part.stored.leaves for part in parts}
    if group is None or group < 1 or len(static) != 1:
        return
    weights = {**FP4, "group_size": group, "dynamic": False}
    inputs = {**FP4, "group_size": group, "dynamic": "local"} if static.pop() else None
    why = f"{len(parts)} weights are packed 4-bit floats in groups of {group}, by their shapes."
    yield Scheme(_compressed_tensors("nvfp4-pack-quantized", weights, inputs), "ignore", why)


def _modelopt_fp4(parts: Sequence[Part]) -> Iterator[Scheme]:
    group = _group(parts, "weight_scale")
    static = {"input_scale" in part.stored.leaves for part in parts}
    if group is None or group < 1 or len(static) != 1:
        return
    algorithm = "NVFP4" if static.pop() else "W4A16_NVFP4"
    config = {"quant_method": "modelopt", "quant_algo": algorithm, "group_size": group, "ignore": []}
    yield Scheme(config, "ignore", f"{len(parts)} weights are as ModelOpt writes {algorithm}.")


def _block(parts: Sequence[Part], leaf: str) -> tuple[int, int] | None:
    """The block of scales that stand by block: the usual one where it fits all, else what divides."""
    scales = [(part, part.leaf(leaf)) for part in parts]
    shapes = [(part, scale.shape) for part, scale in scales if scale is not None and len(scale.shape) == 2]
    if len(shapes) != len(parts):
        return None
    usual = all(shape == (-(-part.outputs // BLOCK), -(-part.inputs // BLOCK)) for part, shape in shapes)
    if usual:
        return BLOCK, BLOCK
    rows = _one(_quotient(part.outputs, shape[0]) for part, shape in shapes)
    columns = _one(_quotient(part.inputs, shape[1]) for part, shape in shapes)
    return (rows, columns) if rows and columns else None


DYNAMIC: Final = "No tensor tells how activations are quantized: as such exports have it, at run time."


def _fp8_inverse(parts: Sequence[Part]) -> Iterator[Scheme]:
    block = _block(parts, "weight_scale_inv")
    if block is not None:
        config = {
            "quant_method": "fp8",
            "activation_scheme": "dynamic",
            "weight_block_size": list(block),
            "ignored_layers": [],
        }
        why = f"{len(parts)} weights are FP8 with a weight_scale_inv for every {block[0]} by {block[1]}."
        yield Scheme(config, "ignored_layers", why)


def _eight_bits(type_: str, format_: str) -> Callable[[Sequence[Part]], Iterator[Scheme]]:
    """FP8 and INT8 as compressed-tensors has them: a scale a row, a weight or a block."""

    def write(parts: Sequence[Part]) -> Iterator[Scheme]:
        static = {"input_scale" in part.stored.leaves for part in parts}
        told = _granularity(parts)
        if told is None or len(static) != 1:
            return
        common = {"num_bits": 8, "type": type_, "symmetric": True}
        inputs: dict[str, Any] = {**common, "strategy": "token", "dynamic": True}
        fixed = static.pop()
        if fixed:
            inputs = {**common, "strategy": "tensor", "dynamic": False}
        elif told["strategy"] == "block":
            inputs = {
                **common,
                "strategy": "group",
                "group_size": told["block_structure"][1],
                "dynamic": True,
            }
        name = "FP8" if type_ == "float" else "INT8"
        why = f"{len(parts)} weights are {name} with a scale for each {WORDS[told['strategy']]}."
        config = _compressed_tensors(format_, {**common, **told, "dynamic": False}, inputs)
        yield Scheme(config, "ignore", why, None if fixed else DYNAMIC)

    return write


WORDS: Final = {"tensor": "weight", "channel": "row", "block": "block"}


def _granularity(parts: Sequence[Part]) -> dict[str, Any] | None:
    scales = [scale for part in parts if (scale := part.leaf("weight_scale")) is not None]
    if len(scales) != len(parts):
        return None
    if all(scale.numel == 1 for scale in scales):
        return {"strategy": "tensor"}
    if all(
        scale.numel == part.outputs and _columns(scale) == 1
        for part, scale in zip(parts, scales, strict=True)
    ):
        return {"strategy": "channel"}
    block = _block(parts, "weight_scale")
    return {"strategy": "block", "block_structure": list(block)} if block else None


LAYOUTS: Final[tuple[tuple[Callable[[Part], bool], Callable[[Sequence[Part]], Iterator[Scheme]]], ...]] = (
    (lambda part: _weight(part, "weight_packed", "I32"), _packed),
    (
        lambda part: _weight(part, "weight_packed", "U8") and "weight_global_scale" in part.stored.leaves,
        _nvfp4,
    ),
    (lambda part: _weight(part, "weight", "U8") and "weight_scale_2" in part.stored.leaves, _modelopt_fp4),
    (
        lambda part: _weight(part, "weight", "F8_E4M3") and "weight_scale_inv" in part.stored.leaves,
        _fp8_inverse,
    ),
    (lambda part: _weight(part, "weight", "F8_E4M3"), _eight_bits("float", "float-quantized")),
    (lambda part: _weight(part, "weight", "I8"), _eight_bits("int", "int-quantized")),
)
"""What a layout is told by, and the config of it. Not here: GPTQ and AWQ, whose symmetry no shape tells."""
