"""A `kv_cache_scheme` that is no object, which the engine does not read."""

from collections.abc import Iterator, Mapping
from typing import Final

from dflash_audit.facts import Facts
from dflash_audit.repairs.edit import ABSENT, Proposal, edit

OWN: Final = "quantization_config"
KEY: Final = "kv_cache_scheme"


def propose(facts: Facts) -> Iterator[Proposal]:
    """Its removal."""
    config = facts.checkpoint.config
    own = config.get(OWN)
    scheme = own.get(KEY) if isinstance(own, Mapping) else None
    if scheme is not None and not isinstance(scheme, Mapping):
        why = "The engine takes an object here, and without the key it keeps the cache as it is."
        doubt = "The server's --kv-cache-dtype says then how the draft's cache is kept."
        found = edit(config, (OWN, KEY), ABSENT, why, doubt)
        yield (found,) if found else ()
