"""Weights as the forward pass asks for them: what nothing filled shows, whatever its dtype, and is named."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest
from unpack.layers import quantized

from dflash_audit.loadplan import Shard
from dflash_audit.tree import Linear, Module, Parameter

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("compressed_tensors")
pytestmark = pytest.mark.warmup

from unpack.record import RECORDS, Record  # noqa: E402

from dflash_audit.warmup.memory import POISON_BYTE, REST, Memory, Stored  # noqa: E402
from dflash_audit.warmup.weights import Weights  # noqa: E402

NAMES: Final[Mapping[str, tuple[str, tuple[Shard, ...]]]] = {
    "QKVParallelLinear": ("layers.0.self_attn.qkv_proj", ("q", "k", "v")),
    "MergedColumnParallelLinear": ("layers.0.mlp.gate_up_proj", (0, 1)),
    "RowParallelLinear": ("layers.0.mlp.down_proj", ()),
    "ReplicatedLinear": ("fc", ()),
}
"""The class of a linear -> where a draft has one, and the shards of a parameter of it."""

FP4_GROUP: Final = {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}
W4A4: Final = {
    "quant_method": "compressed-tensors",
    "format": "nvfp4-pack-quantized",
    "config_groups": {"all": {"targets": ["Linear"], "weights": FP4_GROUP, "input_activations": FP4_GROUP}},
}
MXFP8: Final = {"quant_method": "mxfp8", "activation_scheme": "dynamic"}


class Held(Memory):
    """A memory of one module, as it is given."""

    def __init__(
        self,
        module: Module,
        stored: Mapping[str, Any],
        holes: Mapping[str, tuple[Shard, ...]] | None = None,
    ) -> None:
        self._held = {f"{module.name}.{name}": value for name, value in stored.items()}
        self._holes = {f"{module.name}.{name}": shards for name, shards in (holes or {}).items()}

    def parameter(self, name: str) -> Any:
        return self._held[name]

    def of_module(self, name: str) -> Stored:
        return Stored(self, {full.rpartition(".")[2]: full for full in self._held})

    def holes(self, name: str) -> tuple[Shard, ...]:
        return self._holes.get(name, ())


def weights_of(
    module: Module, stored: Mapping[str, Any], holes: Mapping[str, tuple[Shard, ...]] | None = None
) -> Weights:
    return Weights({module.name: module}, Held(module, stored, holes))


def in_a_draft(module: Module) -> Module:
    return module._replace(name=NAMES[module.module_class][0])


def integers(module: Module) -> list[str]:
    return [p.name for p in module.parameters if not getattr(torch, p.dtype).is_floating_point]


def with_integers() -> Iterator[Any]:
    for path in RECORDS:
        record = Record(path)
        for name in integers(record.module):
            yield pytest.param(record, name, id=f"{path.stem}-{name}")


INTEGERS: Final = [*with_integers()]


@pytest.mark.parametrize(("record", "name"), INTEGERS)
def test_an_integer_parameter_that_nothing_fills_shows_if_it_is_read(record: Record, name: str) -> None:
    """Alone of its layer it holds the poison that the memory puts there: every sum is NaN, or none is."""
    module = in_a_draft(record.module)
    poison = torch.empty_like(record.stored[name])
    poison.view(torch.uint8).fill_(POISON_BYTE)
    weights = weights_of(module, record.stored | {name: poison}, {name: ("all",)})

    y = weights.linear(module.name)(record.x)

    is_read = name in record.read
    assert bool(y.isnan().all() if is_read else y.isfinite().all())
    assert [*weights.unfilled(module.name)] == ([f"{module.name}.{name}"] if is_read else [])


def test_codes_scales_zero_points_and_indices_are_among_them() -> None:
    names = {value.values[1] for value in INTEGERS}
    assert {"weight_packed", "qweight", "qzeros", "weight_zero_point", "weight_g_idx", "g_idx"} <= names


@pytest.mark.parametrize(("record", "name"), INTEGERS)
def test_a_shard_that_nothing_fills_spoils_its_own_rows_alone(record: Record, name: str) -> None:
    module = in_a_draft(record.module)
    shards = NAMES[module.module_class][1]
    whole = weights_of(module, record.stored).linear(module.name).weight
    for at, shard in enumerate(shards):
        weights = weights_of(module, record.stored, {name: (shard,)})
        weight = weights.linear(module.name).weight
        parts, before = weight.split(record.outputs), whole.split(record.outputs)
        for other, (part, own) in enumerate(zip(parts, before, strict=True)):
            spoiled = other == at and name in record.read
            assert bool(part.isnan().all()) if spoiled else torch.equal(part, own)
        named = [f"{module.name}.{name}[{shard}]"] if name in record.read else []
        assert [*weights.unfilled(module.name)] == named


@pytest.mark.parametrize(
    ("method", "config"), [("compressed-tensors", W4A4), ("mxfp8", MXFP8)], ids=["ct-w4a4-fp4", "mxfp8"]
)
def test_integers_of_the_schemes_of_newer_cards(method: str, config: dict[str, Any]) -> None:
    module = in_a_draft(quantized(method, config, capability=100))
    stored = {p.name: torch.ones(p.shape).to(getattr(torch, p.dtype)) for p in module.parameters}
    assert integers(module)
    for name in integers(module):
        poison = torch.full(stored[name].shape, POISON_BYTE).to(torch.uint8)
        weights = weights_of(module, stored | {name: poison}, {name: ("all",)})
        assert bool(weights.linear(module.name)(torch.ones(3, 256)).isnan().all())


@pytest.mark.parametrize("record", [Record(path) for path in RECORDS if path.stem == "ct-w8a16-g64"])
def test_what_is_no_shard_spoils_every_row(record: Record) -> None:
    module = in_a_draft(record.module)
    weights = weights_of(module, record.stored, {"weight_packed": (REST,)})
    assert bool(weights.linear(module.name).weight.isnan().all())
    assert [*weights.unfilled(module.name)] == [f"{module.name}.weight_packed[rest]"]


def dense(**parameters: tuple[int, ...]) -> Module:
    own = tuple(Parameter(name, shape, "bfloat16") for name, shape in parameters.items())
    layer = Linear("RowParallelLinear", "fc", 4, (2,), 4, (2,))
    return Module("fc", "RowParallelLinear", own, "fc", None, layer)


def test_only_what_was_read_is_named() -> None:
    module = dense(weight=(2, 4), bias=(2,), unused=(1,))
    stored = {"weight": torch.full((2, 4), torch.nan), "bias": torch.ones(2), "unused": torch.zeros(1)}
    weights = weights_of(module, stored, {"weight": ("all",), "unused": ("all",)})
    assert [*weights.unfilled("fc")] == []

    linear = weights.linear("fc")

    assert linear.weight is stored["weight"]  # it has poison of its own
    assert weights.read == {"fc.weight", "fc.bias"}
    assert [*weights.unfilled("fc")] == ["fc.weight"]
    weights.parameter("fc.unused")
    assert [*weights.unfilled("fc")] == ["fc.weight", "fc.unused"]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e4m3fn", "float8_e8m0fnu"])
@pytest.mark.parametrize("broken", [False, True])
def test_what_the_checkpoint_itself_breaks_is_told_apart(dtype: str, broken: bool) -> None:
    module = dense(weight=(2, 4), bias=(2,))
    weight = torch.ones(2, 4)
    weight[1, 2] = torch.nan if broken else 0.5
    stored = {"weight": weight.to(getattr(torch, dtype)), "bias": torch.full((2,), torch.nan)}
    weights = weights_of(module, stored, {"bias": ("all",)})
    assert [*weights.broken("fc")] == []
    weights.parameter("fc.weight")
    weights.parameter("fc.bias")
    assert [*weights.broken("fc")] == (["fc.weight"] if broken else [])
    assert [*weights.unfilled("fc")] == ["fc.bias"]


def test_which_modules_are_linears() -> None:
    modules = {
        "fc": dense(weight=(2, 4)),
        "head": Module("head", "Linear", (Parameter("weight", (2, 4), "bfloat16"),)),
        "norm": Module("norm", "RMSNorm", (Parameter("weight", (4,), "bfloat16"),)),
    }
    weights = Weights(modules, Held(modules["fc"], {}))
    names = ("fc", "head", "norm", "nothing")
    assert [name for name in names if weights.has_linear(name)] == ["fc", "head"]
