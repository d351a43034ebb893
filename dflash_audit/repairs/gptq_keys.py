"""`bits` and `group_size` of a GPTQ config, by the shapes of its tensors, and a config that is lost.

What no tensor tells, the symmetry and the order of activations, stays as it is written; where it
is not written, it is said as nearly every export has it.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dflash_audit.diagnosis.stored import Stored, stored_modules
from dflash_audit.diagnosis.stored_layout import WORD
from dflash_audit.facts import Facts
from dflash_audit.repairs.edit import Edit, Proposal, at, edit

OWN: Final = "quantization_config"
METHODS: Final = ("gptq", "auto-round")

USUAL: Final[Mapping[str, bool]] = {"sym": True, "desc_act": False}
"""Source: the defaults of AutoGPTQ, GPTQModel and llm-compressor's exports."""


def propose(facts: Facts) -> Iterator[Proposal]:
    """The keys that the shapes contradict, with those that lack; the whole config where there is none."""
    config = facts.checkpoint.config
    own = config.get(OWN)
    method = str(own.get("quant_method", "")).lower() if isinstance(own, Mapping) else "gptq"
    if (own is not None and not isinstance(own, Mapping)) or method not in METHODS:
        return
    parts = [part for part in stored_modules(facts.checkpoint.tensors).values() if "qweight" in part.leaves]
    told = {_of(part) for part in parts}
    (found,) = told if len(told) == 1 else (None,)
    if found is None:
        return
    bits, group = found
    why = f"{len(parts)} weights are packed by {bits} bits, with a scale for every {group} inputs."
    edits: list[Edit | None] = []
    if own is None:
        edits.append(edit(config, (OWN, "quant_method"), "gptq", why))
    edits += [edit(config, (OWN, key), value, why) for key, value in (("bits", bits), ("group_size", group))]
    edits += [_usual(config, key) for key in USUAL if method == "gptq"]
    yield tuple(each for each in edits if each)


def _usual(config: Mapping[str, Any], key: str) -> Edit | None:
    if isinstance(at(config, (OWN, key)), bool):
        return None
    why = "The engine does not take a GPTQ config without it."
    return edit(
        config, (OWN, key), USUAL[key], why, f"No tensor tells {key}: this is what most exports have."
    )


def _of(part: Stored) -> tuple[int, int] | None:
    """(bits, inputs of a group) of a GPTQ weight, whose `g_idx` or `scales` tell its inputs."""
    weight, scales, order = (part.leaves.get(leaf) for leaf in ("qweight", "scales", "g_idx"))
    zeros = part.leaves.get("qzeros")
    if weight is None or scales is None or len(weight.shape) != 2 or len(scales.shape) != 2:
        return None
    if zeros is None or len(zeros.shape) != 2 or not zeros.shape[1] or not weight.shape[0]:
        return None
    # A row of zero points holds one for each output, packed as the weights are.
    bits, rest = divmod(WORD * zeros.shape[1], scales.shape[1] or 1)
    inputs = order.numel if order is not None else WORD * weight.shape[0] // bits if bits else 0
    if rest or not bits or inputs * bits != WORD * weight.shape[0] or not scales.shape[0]:
        return None
    size, rest = divmod(inputs, scales.shape[0])
    return None if rest else (bits, size)
