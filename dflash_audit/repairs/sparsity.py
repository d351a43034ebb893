"""A note that weights are sparse, over weights that are stored whole."""

from collections.abc import Iterator, Mapping
from typing import Final

from dflash_audit.facts import Facts
from dflash_audit.repairs.edit import ABSENT, Proposal, edit

OWN: Final = "quantization_config"
KEY: Final = "sparsity_config"
COMPRESSED: Final = ("bitmask", "compressed", "meta", "weight_bitmask", "weight_compressed")
"""Last parts of the tensors of a weight that is stored without its zeros.

Source: compressed-tensors 0.18.0 `compressors/sparse_compressors/`, `compression_param_names`.
"""

WHY: Final = (
    "The weights are stored with their zeros, and the engine does not build the kernel that this asks."
)


def propose(facts: Facts) -> Iterator[Proposal]:
    """Its removal; nothing where a weight is stored without its zeros."""
    config = facts.checkpoint.config
    own = config.get(OWN)
    leaves = {tensor.name.rpartition(".")[2] for tensor in facts.checkpoint.tensors}
    if isinstance(own, Mapping) and own.get(KEY) and not leaves & set(COMPRESSED):
        found = edit(config, (OWN, KEY), ABSENT, WHY)
        yield (found,) if found else ()
