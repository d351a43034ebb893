"""What goes wrong with a quantized draft: a scale or a zero point that is not the weight's own."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import torch
from fidelity.quantize import Fault, Tensors

Scales = Callable[[torch.Tensor], torch.Tensor]

ONE = ("layers.1.mlp.gate_proj", "layers.1.mlp.up_proj")
"""Where one fused layer is hit: in both of its matrices where they change scales, else in the second."""


def doubled(scale: torch.Tensor) -> torch.Tensor:
    """Scales twice as large."""
    return scale * 2


def one_doubled(scale: torch.Tensor) -> torch.Tensor:
    """One scale of a matrix twice as large."""
    changed = scale.clone()
    changed[0, 0] *= 2
    return changed


def of_next_row(scale: torch.Tensor) -> torch.Tensor:
    """Each row, or row of blocks, with the scales of the next one."""
    return scale.roll(1, 0)


def of_next_group(scale: torch.Tensor) -> torch.Tensor:
    """Each group, or block, with the scale of the next one in its row."""
    return scale.roll(1, 1)


def two_rows_swapped(scale: torch.Tensor) -> torch.Tensor:
    """The rows with the largest and the smallest scales have each other's."""
    size = scale.mean(1)
    return _swapped(scale, int(size.argmax()), int(size.argmin()))


def two_groups_swapped(scale: torch.Tensor) -> torch.Tensor:
    """In one row, the groups with the largest and the smallest scale have each other's."""
    changed = scale.clone()
    row = int((scale.amax(1) / scale.amin(1)).argmax())
    changed[row] = _swapped(scale[row], int(scale[row].argmax()), int(scale[row].argmin()))
    return changed


def _swapped(values: torch.Tensor, one: int, other: int) -> torch.Tensor:
    swapped = values.clone()
    swapped[one], swapped[other] = values[other], values[one]
    return swapped


def rescale(change: Scales, tensors: Tensors, modules: Sequence[str]) -> None:
    """Change the scales of each module."""
    for module in modules:
        scale = tensors[f"{module}.weight_scale"]
        tensors[f"{module}.weight_scale"] = change(scale.float()).to(scale.dtype).contiguous()


def swap_shards(tensors: Tensors, modules: Sequence[str]) -> None:
    """Gate and up projections have each other's scales."""
    for module in modules:
        if module.endswith("up_proj"):
            up, gate = f"{module}.weight_scale", f"{module.removesuffix('up_proj')}gate_proj.weight_scale"
            tensors[gate], tensors[up] = tensors[up].clone(), tensors[gate].clone()


def shift_zero_points(tensors: Tensors, modules: Sequence[str]) -> None:
    """Each zero point one higher, and the highest the lowest."""
    for module in modules:
        packed = tensors[f"{module}.weight_zero_point"]
        bits = 32 * packed.shape[0] // tensors[f"{module}.weight_scale"].shape[0]
        most = (1 << bits) - 1
        numbers = [((packed.long() >> at & most) + 1) & most for at in range(0, 32, bits)]
        words = torch.stack([number << bits * place for place, number in enumerate(numbers)]).sum(0)
        tensors[f"{module}.weight_zero_point"] = torch.where(words < 2**31, words, words - 2**32).int()


Where = Callable[[Tensors, Sequence[str]], None]

BY_ROW: Mapping[str, Where] = {
    "one scale doubled": partial(rescale, one_doubled),
    "scales of the next row": partial(rescale, of_next_row),
    "two rows' scales swapped": partial(rescale, two_rows_swapped),
}
BY_GROUP: Mapping[str, Where] = {
    "scales of the next group": partial(rescale, of_next_group),
    "two groups' scales swapped": partial(rescale, two_groups_swapped),
}


def faults_of(layout: str, everywhere: bool = False) -> dict[str, Fault]:
    """The faults that the layout can have, by name: in one layer of a draft, or in all."""
    found: dict[str, Where] = {
        "scales doubled": partial(rescale, doubled),
        "scales of the other shard": swap_shards,
    }
    if not layout.endswith("by tensor"):
        found |= BY_ROW
        if "by channel" not in layout:
            found |= BY_GROUP
    if "asymmetric" in layout:
        found["zero points off by one"] = shift_zero_points
    return {name: partial(_in, where, everywhere) for name, where in found.items()}


def _in(where: Where, everywhere: bool, tensors: Tensors) -> None:
    scales = [name.removesuffix(".weight_scale") for name in tensors if name.endswith(".weight_scale")]
    where(tensors, scales if everywhere else ONE[1:])
