"""What to set where a quantized tensor has another size than its scheme says; no rule of its own."""

from collections.abc import Iterable
from typing import Final

SCALES: Final = frozenset(
    ("weight_scale", "weight_scale_inv", "weight_scale_2", "weight_zero_point", "scales", "qzeros")
)
"""Last parts of the tensors that stand once a group, or once a block."""

PACKED: Final = frozenset(("weight_packed", "qweight"))
"""Those that hold several numbers an element."""

GROUP: Final = (
    "Set the group size or block of the quantization config to that of the scales, or export the tensors"
    " again."
)
BITS: Final = (
    "Set the bits and the group size of the quantization config, or the sizes in config.json, to those of"
    " the tensors."
)


def scheme_hint(names: Iterable[str]) -> str | None:
    """The mend for tensors or parameters of these names; None where none belongs to a scheme."""
    leaves = {name.rpartition(".")[2] for name in names}
    if leaves and leaves <= SCALES:
        return GROUP
    return BITS if leaves & PACKED else None
