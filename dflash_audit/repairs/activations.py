"""How a compressed-tensors group quantizes activations, where the engine has no kernel for it.

The weights are loaded as they are stored either way. Source: SGLang 0.5.23,
`srt/layers/quantization/compressed_tensors/compressed_tensors.py`
(`_get_scheme_from_parts`): packed integers go with activations that are not quantized;
and `schemes/compressed_tensors_w8a8_int8.py`, whose static `input_scale` has one place for
the shards of a fused layer.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dflash_audit.facts import Facts
from dflash_audit.repairs.edit import Proposal, edit

OWN: Final = "quantization_config"
GROUPS: Final = "config_groups"
KEY: Final = "input_activations"

WITHOUT: Final = "The weights are packed integers, which the engine multiplies by activations as they are."
WIDE: Final = "The activations are then not quantized, as the config meant them to be."
BY_TOKEN: Final = "The engine has no place for the scales of a fused layer's shards; by token it needs none."
AT_RUN_TIME: Final = "The activations are then quantized at run time, and their stored scales are not read."


def propose(facts: Facts) -> Iterator[Proposal]:
    """Integer groups without quantized activations where weights are packed, then by token."""
    config, groups = facts.checkpoint.config, dict(_integer_groups(facts.checkpoint.config))
    packed = any(t.name.endswith(".weight_packed") and t.dtype == "I32" for t in facts.checkpoint.tensors)
    if packed:
        none = [edit(config, (OWN, GROUPS, name, KEY), None, WITHOUT, WIDE) for name in groups]
        yield tuple(each for each in none if each)
    found = []
    for name, activations in groups.items():
        if activations.get("dynamic") in (None, False):
            for key, value in (("strategy", "token"), ("dynamic", True)):
                path = (OWN, GROUPS, name, KEY, key)
                found.append(edit(config, path, value, BY_TOKEN, AT_RUN_TIME))
    yield tuple(each for each in found if each)


def _integer_groups(config: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(name, `input_activations`) of each group that quantizes weights to integers, and activations."""
    own = config.get(OWN)
    groups = own.get(GROUPS) if isinstance(own, Mapping) else None
    for name, group in groups.items() if isinstance(groups, Mapping) else ():
        if not isinstance(group, Mapping):
            continue
        weights, activations = group.get("weights"), group.get(KEY)
        integers = isinstance(weights, Mapping) and weights.get("type", "int") == "int"
        if integers and isinstance(activations, Mapping) and activations:
            yield name, activations
