"""The module tree that an engine builds: modules, their parameters, how each is filled."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from typing import Final, Literal, NamedTuple

from dflash_audit.refusal import NotModelled


class Kind(StrEnum):
    """The class of a parameter, which decides how a weight loader fills it.

    Source: SGLang 0.5.23 `srt/layers/parameter.py`. The last four are a
    `torch.nn.Parameter` in there: PLAIN is one of a linear, or one that
    `default_weight_loader` fills; EXACT takes its own shape alone, SHARDED
    the first rows, VOCABULARY a row for each token.
    """

    BASE = "BasevLLMParameter"
    ROW = "RowvLLMParameter"
    WEIGHT = "ModelWeightParameter"
    PACKED = "PackedvLLMParameter"
    PACKED_COLUMN = "PackedColumnParameter"
    CHANNEL_SCALE = "ChannelQuantScaleParameter"
    GROUP_SCALE = "GroupQuantScaleParameter"
    BLOCK_SCALE = "BlockQuantScaleParameter"
    TENSOR_SCALE = "PerTensorScaleParameter"
    PLAIN = "Parameter"
    EXACT = "exact"
    SHARDED = "sharded"
    VOCABULARY = "vocabulary"


class Placement(NamedTuple):
    """What a weight loader reads off a parameter to place a tensor in it.

    `output_dim`, `input_dim` and `packed_dim` are axes of the parameter;
    `packed_factor` counts the logical numbers in one stored number along
    `packed_dim`; `scalar_per_shard` marks a plain parameter with one scalar
    for each logical matrix (`needs_scalar_to_array`); `tokens` are the rows
    that a vocabulary's tensor must have, padding left out.
    """

    kind: Kind = Kind.PLAIN
    output_dim: int | None = None
    input_dim: int | None = None
    packed_dim: int | None = None
    packed_factor: int | Fraction = 1
    scalar_per_shard: bool = False
    scale_per_row: bool = False  # a block scale in the ue8m0 format, one row a row
    tokens: int | None = None


class Parameter(NamedTuple):
    """One parameter of a module: `name` is its own, `dtype` torch's without `torch.`.

    `defaulted`: it holds a right value of its own when nothing fills it, each number of
    it `default`; None where what it holds is read by nobody. `unread`: an engine registers
    it for checkpoints that hold it, and takes it away unread where nothing fills it.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    placement: Placement = Placement()
    defaulted: bool = False
    default: float | None = None
    unread: bool = False


class Linear(NamedTuple):
    """A linear layer as its quantization method is asked about it.

    `output_sizes` are the logical matrices fused in it (q, k, v; gate, up; or
    one) over all ranks, `output_partition_sizes` those of one rank. So many
    ranks as `kv_replicas` says share their key and value heads.
    """

    module_class: str
    prefix: str
    input_size: int
    output_sizes: tuple[int, ...]
    input_size_per_partition: int
    output_partition_sizes: tuple[int, ...]
    kv_replicas: int = 1

    @property
    def stored_sizes(self) -> tuple[int, ...]:
        """The matrices as a checkpoint stores them, without the replicas of key and value heads."""
        first, *others = self.output_sizes
        return (first, *(size // self.kv_replicas for size in others))

    @property
    def output_size(self) -> int:
        return sum(self.output_sizes)

    @property
    def output_size_per_partition(self) -> int:
        return sum(self.output_partition_sizes)


class Scheme(NamedTuple):
    """How one layer is quantized, and the parameters that it gets for it.

    `name` is the engine's class of the scheme, or of the linear method where
    it has no schemes; `loader` the weight loader that fills the parameters;
    `block_size` what that loader reads as the config's `weight_block_size`.
    """

    name: str
    loader: Literal["v1", "v2"]
    parameters: tuple[Parameter, ...]
    block_size: tuple[int, int] | None = None


class Module(NamedTuple):
    """A module of the built draft.

    `prefix` is the name under which the quantization config is asked, None
    where nobody asks. `parameters` counts its own, not its children's.
    """

    name: str
    module_class: str
    parameters: tuple[Parameter, ...] = ()
    prefix: str | None = None
    scheme: Scheme | None = None
    linear: Linear | None = None

    @property
    def shards(self) -> tuple[str | int, ...]:
        """The shard ids of a fused layer, in the order of its matrices; none for another."""
        return tuple(FUSED.get(self.name.rpartition(".")[2], {}).values())


class Modules(dict[str, Module]):
    """The modules of a draft by name, in the order in which it registers them."""

    def owner(self, tensor: str) -> Module | None:
        """The module that a tensor of this name on disk is for, once all are registered.

        Fused ones go by the names of their shards too, and all with `model.` before them or without.
        """
        return self.owners.get(tensor.removeprefix("model.").rpartition(".")[0])

    @cached_property
    def owners(self) -> Mapping[str, Module]:
        """Every name that a module goes by on disk, without a leading `model.` -> the module."""
        names = {name for module in self for name in (module, *_shards_of(module))}
        plain = {name.removeprefix("model.") for name in names}
        found = ((name, self._meant(name)) for name in plain if name)
        return {name: module for name, module in found if module is not None}

    def _meant(self, plain: str) -> Module | None:
        for name in (plain, f"model.{plain}"):
            head, _, last = name.rpartition(".")
            fused = FUSED_OF.get(last)
            found = (self.get(f"{head}.{fused}") if fused else None) or self.get(name)
            if found is not None:
                return found
        return None


def _shards_of(module: str) -> list[str]:
    """The names of the modules that are fused into one of this name."""
    head, dot, last = module.rpartition(".")
    return [f"{head}{dot}{shard}" for shard in FUSED.get(last, ())]


MOST_LAYERS: Final = 500
"""A draft has a handful; a config that says more is not worth the memory of its tree."""


def layers_to_build(layers: int) -> int:
    """The number of layers itself; raises `NotModelled` for more than `MOST_LAYERS`."""
    if layers > MOST_LAYERS:
        raise NotModelled(f"a draft of {layers} layers is not replayed")
    return layers


MOST_MODULES: Final = 20_000
"""A draft has a hundred or so; a config that asks for a billion is not worth the memory of their names."""


@dataclass(slots=True)
class Tree:
    """Every module of a draft."""

    modules: Modules = field(default_factory=Modules)

    def add(self, module: Module) -> None:
        """Register a module; raises `NotModelled` for more than `MOST_MODULES`."""
        if len(self.modules) == MOST_MODULES:
            raise NotModelled(f"a draft of more than {MOST_MODULES:,} modules is not replayed")
        self.modules[module.name] = module

    def parameters(self) -> Iterator[tuple[str, Module, Parameter]]:
        """Yield (full name, its module, parameter), each parameter once."""
        for module in self.modules.values():
            for parameter in module.parameters:
                name = f"{module.name}.{parameter.name}" if module.name else parameter.name
                yield name, module, parameter


FUSED: Mapping[str, Mapping[str, str | int]] = {
    "qkv_proj": {"q_proj": "q", "k_proj": "k", "v_proj": "v"},
    "gate_up_proj": {"gate_proj": 0, "up_proj": 1},
}
"""Fused module -> checkpoint module -> shard id.

Source: SGLang 0.5.23 `srt/models/dflash.py`, `load_weights`.
"""

FUSED_OF: Mapping[str, str] = {shard: fused for fused, shards in FUSED.items() for shard in shards}
"""Name of a shard -> that of the module it is fused into."""
