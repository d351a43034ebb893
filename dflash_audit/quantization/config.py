"""What every quantization method gives the builder of a draft."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Protocol

from dflash_audit.tree import Linear, Scheme


class Dialect(NamedTuple):
    """What a version of the engine makes of quantization configs; what is not given is as in 0.5.23.

    `more` and `fewer` are methods that it has, or has not. With `weight_only_floats`
    compressed-tensors serves floating point weights alone by channel, and NVFP4 on
    every card. `flat_fp4_lists` are the keys of the layers that a flat config of
    ModelOpt's NVFP4 leaves dense. With `own_blocks` block-FP8 layers of mixed
    precision have a block of their `group_size`. With `needs_section` a
    `hf_quant_config.json` must hold `quantization`.
    """

    more: frozenset[str] = frozenset()
    fewer: frozenset[str] = frozenset()
    weight_only_floats: bool = True
    flat_fp4_lists: tuple[str, ...] = ("ignore", "modules_to_not_convert", "exclude_modules")
    own_blocks: bool = True
    needs_section: bool = False


CURRENT: Final = Dialect()


class Surroundings(NamedTuple):
    """What a method may read beside its own config.

    `packed_modules_mapping` is the draft class's: fused module -> its shards;
    `capability` the card's compute capability times ten (90 for an H200);
    `draft` the draft's config as the engine sees it; `dialect` its version's.
    """

    packed_modules_mapping: Mapping[str, tuple[str, ...]]
    capability: int
    draft: Mapping[str, Any]
    dialect: Dialect = CURRENT


class QuantConfig(Protocol):
    """A quantization config that an engine has accepted.

    Each method raises `Refused` where the engine would raise, and
    `NotModelled` where the audit does not know.
    """

    @property
    def left_dense(self) -> tuple[str, ...]:
        """The entries of the list of layers to leave dense, as they are written."""
        ...

    def names_looked_up(self, prefix: str) -> tuple[str, ...]:
        """The names under which a layer asked for as `prefix` is looked up in that list."""
        ...

    def leaves_dense(self, entry: str, name: str) -> bool:
        """Whether one entry of that list matches one module name, a fused layer's or a shard's."""
        ...

    def linear(self, layer: Linear) -> Scheme:
        """The scheme of a linear layer; the unquantized one where it is left alone."""
        ...

    def attention(self) -> Scheme | None:
        """The scheme of the attention's KV cache (k_scale, v_scale), None without one."""
        ...

    def embedding(self, prefix: str) -> Scheme | None:
        """The scheme of a vocabulary embedding, None where it stays dense."""
        ...
