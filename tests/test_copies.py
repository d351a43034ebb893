"""Which numbers of a tensor a loader copies where, where shapes differ.

Whole loads are held bit for bit in `warmup/test_recorded_fills.py`.
"""

from typing import Final

import pytest

from dflash_audit.copying import view
from dflash_audit.engines.sglang.weight_loaders import place
from dflash_audit.loadplan import Box, Shard
from dflash_audit.tree import Kind, Linear, Module, Parameter, Placement, Scheme

ROWS: Final = Placement(output_dim=0, input_dim=1)
SCALES: Final = Placement(Kind.TENSOR_SCALE)
SCALARS: Final = Placement(Kind.TENSOR_SCALE, scalar_per_shard=True)
WEIGHT: Final = Placement(Kind.WEIGHT, output_dim=0, input_dim=1)
GROUPS: Final = Placement(Kind.PACKED, output_dim=1, input_dim=0, packed_dim=1, packed_factor=8)

Case = tuple[tuple[int, ...], Placement, str, tuple[int, ...], Shard | None, list[tuple[Box, Box | None]]]


def linear(
    module_class: str, sizes: tuple[int, ...], loader: str, parameter: Parameter, tp: int = 1
) -> Module:
    own = tuple(size // tp for size in sizes)
    layer = Linear(module_class, "", 4, sizes, 4, own)
    scheme = Scheme("scheme", "v1" if loader == "v1" else "v2", (parameter,))
    return Module("m", module_class, (parameter,), "", scheme, layer)


def copies(module: Module, shape: tuple[int, ...], shard: Shard | None) -> list[tuple[Box, Box | None]]:
    (parameter,) = module.parameters
    return [
        (copy.into, copy.out_of) for copy in place(module, parameter, view(shape, parameter.dtype), shard)
    ]


QKV: Final[dict[str, Case]] = {
    "a shard": ((16, 4), ROWS, "v1", (4, 4), "k", [(((8, 4), (0, 4)), ((0, 4), (0, 4)))]),
    "first rows of a larger one": (
        (16, 4), ROWS, "v1", (9, 4), "v", [(((12, 4), (0, 4)), ((0, 4), (0, 4)))],
    ),
    "packed outputs": ((1, 2), GROUPS, "v2", (1, 1), "k", [(((0, 1), (1, 1)), ((0, 1), (0, 1)))]),
    "a scalar scale": ((3,), SCALES, "v2", (), "v", [(((2, 1),), ((0, 1),))]),
    "a scale of one row": ((3,), SCALARS, "v1", (1,), "k", [(((1, 1),), ((0, 1),))]),
    "one scale for all, first loader": ((3,), SCALARS, "v1", (), None, [(((0, 1),), ((0, 1),))]),
    "one scale for all": (
        (3,), SCALES, "v2", (1,), None, [(((index, 1),), ((0, 1),)) for index in range(3)],
    ),
    "stored fused": (
        (16, 4), WEIGHT, "v2", (16, 4), None,
        [
            (((0, 8), (0, 4)), ((0, 8), (0, 4))),
            (((8, 4), (0, 4)), ((8, 4), (0, 4))),
            (((12, 4), (0, 4)), ((12, 4), (0, 4))),
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", QKV)
def test_qkv(what: str) -> None:
    shape, placement, loader, tensor, shard, expected = QKV[what]
    sizes = (8, 8, 8) if what == "packed outputs" else (8, 4, 4)
    module = linear("QKVParallelLinear", sizes, loader, Parameter("p", shape, "float32", placement))
    assert copies(module, tensor, shard) == expected


def test_a_gate_that_is_too_short_is_padded_with_zeros() -> None:
    module = linear("MergedColumnParallelLinear", (6, 6), "v1", Parameter("p", (12, 4), "float32", ROWS))
    assert copies(module, (5, 4), 1) == [
        (((6, 5), (0, 4)), ((0, 5), (0, 4))),
        (((11, 1), (0, 4)), None),
    ]


def test_one_rank_of_a_gate_stored_fused() -> None:
    parameter = Parameter("p", (6, 4), "float32", ROWS)
    module = linear("MergedColumnParallelLinear", (6, 6), "v1", parameter, tp=2)
    assert copies(module, (12, 4), None) == [
        (((0, 3), (0, 4)), ((0, 3), (0, 4))),
        (((3, 3), (0, 4)), ((6, 3), (0, 4))),
    ]


def test_rows_of_inputs_are_padded_along_the_inputs() -> None:
    module = linear("RowParallelLinear", (4,), "v1", Parameter("p", (4, 4), "float32", ROWS))
    assert copies(module, (4, 3), None) == [
        (((0, 4), (0, 3)), ((0, 4), (0, 3))),
        (((0, 4), (3, 1)), None),
    ]


def test_a_scalar_becomes_the_first_of_an_index_that_is_padded() -> None:
    index = Parameter("g_idx", (4,), "int32", Placement(Kind.ROW, input_dim=0))
    module = linear("RowParallelLinear", (4,), "v2", index)
    assert copies(module, (), None) == [(((0, 1),), ((0, 1),)), (((1, 3),), None)]


def test_one_number_goes_into_one_number_whatever_its_shape() -> None:
    module = Module("m", "RMSNorm", (Parameter("p", (), "float32"),))
    assert copies(module, (1, 1), None) == [(((0, 1),), ((0, 1), (0, 1)))]


@pytest.mark.parametrize(
    "rows, tensor, expected",
    [
        (8, (5, 2), [(((0, 5), (0, 2)), ((0, 5), (0, 2))), (((5, 3), (0, 2)), None)]),
        (5, (5, 2), [(((0, 5), (0, 2)), ((0, 5), (0, 2)))]),
        (4, (5, 2), [(((0, 4), (0, 2)), ((0, 4), (0, 2)))]),  # one rank of several
        (8, (5, 1), [(((0, 5), (0, 2)), ((0, 5), (0, 1))), (((5, 3), (0, 2)), None)]),  # broadcast
    ],
)
def test_a_vocabulary_ends_in_zeros(
    rows: int, tensor: tuple[int, ...], expected: list[tuple[Box, Box | None]]
) -> None:
    placement = Placement(Kind.VOCABULARY, output_dim=0, input_dim=1, tokens=5)
    module = Module("m", "VocabParallelEmbedding", (Parameter("p", (rows, 2), "float32", placement),))
    assert copies(module, tensor, None) == expected
