"""Keys of a scheme that the tensors contradict: bits, groups, type, format, block, algorithm."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dflash_audit.facts import Facts
from dflash_audit.repairs.edit import ABSENT, Edit, Proposal, at, edit
from dflash_audit.repairs.quantization_config import OWN, told_schemes

TOLD: Final = ("num_bits", "type", "symmetric", "strategy", "group_size", "block_structure")

ORDERS: Final = {"group": "group", "dynamic": "group"}
"""An order of activations with a `weight_g_idx` of its own; any other has none.

Source: compressed-tensors 0.18.0 `quantization/quant_args.py`, `ActivationOrdering`.
"""

WITH_ORDER: Final = "The weights have a weight_g_idx, which this order goes by."
WITHOUT_ORDER: Final = "No weight has the weight_g_idx that this order goes by."


def propose(facts: Facts) -> Iterator[Proposal]:
    """The keys of the one group, together with the format, or those that FP8 and ModelOpt have instead."""
    config = facts.checkpoint.config
    own = config.get(OWN)
    if not isinstance(own, Mapping):
        return
    if own.get("quant_method") in [*FLAT]:
        for scheme in told_schemes(facts):
            yield tuple(_flat(facts, own, scheme.config, scheme.why))
        return
    groups = own.get("config_groups")
    if not isinstance(groups, Mapping) or len(groups) != 1:
        return
    name, group = next(iter(groups.items()))
    if not isinstance(group, Mapping):
        return
    for scheme in told_schemes(facts):
        yield tuple(_edits(facts, name, group, scheme.config, scheme.why))


FLAT: Final[Mapping[str, tuple[str, ...]]] = {
    "fp8": ("weight_block_size",),
    "modelopt": ("quant_algo", "group_size"),
}
"""Method -> the keys of a config without groups that the tensors tell."""


def _flat(facts: Facts, own: Mapping[str, Any], told: Mapping[str, Any], why: str) -> Iterator[Edit]:
    method = own["quant_method"]
    if told["quant_method"] == method:
        found = (edit(facts.checkpoint.config, (OWN, key), told[key], why) for key in FLAT[method])
        yield from (each for each in found if each)


def _edits(
    facts: Facts, name: str, group: Mapping[str, Any], told: Mapping[str, Any], why: str
) -> Iterator[Edit]:
    if "config_groups" not in told:
        return
    config = facts.checkpoint.config
    weights = told["config_groups"]["group_0"]["weights"]
    path = (OWN, "config_groups", name)
    found = [edit(config, (*path, "weights", key), weights[key], why) for key in TOLD if key in weights]
    if "group_size" not in weights and at(config, (*path, "weights", "group_size")) not in (None, ABSENT):
        found.append(edit(config, (*path, "weights", "group_size"), ABSENT, why))
    if at(config, (*path, "weights", "dynamic")) not in (ABSENT, None, False):
        found.append(edit(config, (*path, "weights", "dynamic"), False, why))
    order = weights.get("actorder")
    if ORDERS.get(str(at(config, (*path, "weights", "actorder")))) != order:
        found.append(
            edit(config, (*path, "weights", "actorder"), order, WITH_ORDER if order else WITHOUT_ORDER)
        )
    found.append(edit(config, (OWN, "format"), told["format"], why))
    if "format" in group:
        found.append(edit(config, (*path, "format"), told["format"], why))
    yield from (each for each in found if each)
