"""The repairs: pure functions from facts to changes of config.json, one kind a file.

A repair proposes what would make an engine load the checkpoint as it is stored,
and proposes a value only where the checkpoint tells it; whether it helps is for
the search to find out, which replays every proposal.
"""

from collections.abc import Iterator
from importlib import import_module
from itertools import islice
from typing import Final

from dflash_audit.facts import Facts
from dflash_audit.repairs.edit import Proposal
from dflash_audit.repairs.speculators import other_dialect

REPAIRS: Final = (
    "same_value",
    "speculators",
    "near_names",
    "layer_types",
    "quant_method",
    "sliding_window",
    "tensor_keys",
    "class_name",
    "target_layers",
    "nemotron_key",
    "sinks",
    "own_head",
    "ignore_list",
    "targets",
    "gptq_rules",
    "gptq_modules",
    "gptq_keys",
    "auto_round_rules",
    "scheme_keys",
    "activations",
    "sparsity",
    "kv_cache_scheme",
    "quantization_config",
    "nothing_quantized",
)
"""Each a file with a `propose(facts)`, those that change least first."""


MOST_PROPOSALS: Final = 64
"""Of one repair; each is replayed, and a config may hold any number of values."""


def proposals(facts: Facts) -> Iterator[tuple[str, Proposal]]:
    """(repair, proposal), in the order in which they are to be tried."""
    for repair in REPAIRS:
        propose = import_module(f"{__name__}.{repair}").propose
        for proposal in islice(propose(facts), MOST_PROPOSALS):
            if proposal and not other_dialect(facts.checkpoint.config, proposal):
                yield repair, proposal
