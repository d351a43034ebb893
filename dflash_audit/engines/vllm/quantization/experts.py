"""The routed experts of a mixture, and what they hold where nothing quantizes them.

Source: vLLM 0.33.0 `model_executor/layers/fused_moe/routed_experts.py`,
`unquantized_fused_moe_method.py` and `oracle/unquantized.py`.
"""

from typing import Final, NamedTuple

from dflash_audit.refusal import Refused
from dflash_audit.tree import Parameter, Scheme

CLASS: Final = "RoutedExperts"

SCORES: Final = "e_score_correction_bias"
"""Their parameter that is no weight of theirs, and is loaded as any."""

PADDED_FAMILY: Final = 10
"""Cards (a tenth of their compute capability) whose kernel wants the inner size in steps of `PADDING`."""

PADDING: Final = 128


class Experts(NamedTuple):
    """The routed experts of one mixture, as a quantization method is asked about them.

    `inner` is the size between their two matrices on one of the `ranks`; `capability` the
    card's (times ten).
    """

    prefix: str
    number: int
    hidden: int
    inner: int
    ranks: int
    capability: int


def dense_experts(layer: Experts) -> Scheme:
    """`UnquantizedFusedMoEMethod`."""
    if layer.capability // 10 == PADDED_FAMILY:
        layer = layer._replace(inner=-(-layer.inner // PADDING) * PADDING)
    return scheme("UnquantizedFusedMoEMethod", matrices("weight", layer, "bfloat16"))


def scheme(name: str, *parameters: tuple[Parameter, ...]) -> Scheme:
    """A scheme of these parameters, in the order in which they are registered."""
    return Scheme(name, "v1", tuple(each for some in parameters for each in some))


def matrices(name: str, layer: Experts, dtype: str) -> tuple[Parameter, ...]:
    """Both matrices of every expert, gate over up in the first, unpacked."""
    first, second = (2 * layer.inner, layer.hidden), (layer.hidden, layer.inner)
    return both(name, layer, first, second, dtype)


def tensor_scales(name: str, layer: Experts) -> tuple[Parameter, ...]:
    """A number for each matrix of every expert."""
    return both(name, layer, (2,), (), "float32")


def both(
    name: str, layer: Experts, first: tuple[int, ...], second: tuple[int, ...], dtype: str
) -> tuple[Parameter, ...]:
    """`w13_NAME` and `w2_NAME`, of these shapes for each expert."""
    return (
        Parameter(f"w13_{name}", (layer.number, *first), dtype),
        Parameter(f"w2_{name}", (layer.number, *second), dtype),
    )


def check_whole_blocks(layer: Experts, block: tuple[int, int]) -> None:
    """Refuse experts that are split inside a block (`validate_fp8_block_shape_moe`)."""
    rows, columns = block
    if layer.inner % rows:
        raise Refused(f"{layer.inner} outputs of gate and up are no multiple of block_n {rows}")
    if layer.ranks > 1 and layer.inner % columns:
        raise Refused(f"{layer.inner} inputs of down are no multiple of block_k {columns}")


def scales_of_blocks(name: str, layer: Experts, block: tuple[int, int]) -> tuple[Parameter, ...]:
    """A scale for each block of every matrix."""
    rows, columns = block
    first = (2 * -(-layer.inner // rows), -(-layer.hidden // columns))
    second = (-(-layer.hidden // rows), -(-layer.inner // columns))
    return both(name, layer, first, second, "float32")
