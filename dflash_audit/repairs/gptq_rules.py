"""Rules of a GPTQ config (`dynamic`) that leave dense what is dense on disk.

Source: SGLang 0.5.23 `srt/layers/quantization/utils.py`, `get_dynamic_override`: the first
pattern that matches the start of a name counts, and `-:` leaves its layers dense.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dflash_audit.diagnosis.stored import State, faults, state_of, stored_in
from dflash_audit.facts import Facts
from dflash_audit.repairs.edit import Proposal, edit
from dflash_audit.repairs.what_if import with_edits
from dflash_audit.tree import Modules

OWN: Final = "quantization_config"
RULES: Final = (OWN, "dynamic")
SKIP: Final = "-:"
EVERYTHING: Final[Mapping[str, Mapping[str, Any]]] = {f"{SKIP}.*": {}}


def propose(facts: Facts) -> Iterator[Proposal]:
    """One rule for all dense layers, before those that are there."""
    config = facts.checkpoint.config
    own = config.get(OWN)
    if not isinstance(own, Mapping) or str(own.get("quant_method", "")).lower() != "gptq":
        return
    if not any(faults(run) for run in facts.runs):
        return
    bare = edit(config, RULES, EVERYTHING, "")
    names = names_of_dense(with_edits(facts, (bare,) if bare else ()))
    if names:
        written = own.get("dynamic")
        pattern = rf"{SKIP}(.*\.)?({'|'.join(name.replace('.', chr(92) + '.') for name in names)})$"
        rules = {pattern: {}, **(written if isinstance(written, Mapping) else {})}
        why = f"{', '.join(names)}: dense on disk, and without a rule the engine builds them quantized."
        found = edit(config, RULES, rules, why)
        yield (found,) if found else ()


def names_of_dense(bare: Facts) -> list[str]:
    """Last parts of the names under which engines ask about what is dense on disk, else the whole names."""
    dense: dict[str, None] = {}
    quantized: set[str] = set()
    for run in bare.runs:
        modules = run.tree.modules if run.tree else Modules()
        for name, parts in stored_in(modules, bare.checkpoint.tensors).items():
            prefix, state = modules[name].prefix, state_of(parts)
            if prefix is not None and state is State.DENSE:
                dense[prefix] = None
            elif prefix is not None:
                quantized.add(prefix)
    lasts = {prefix.rpartition(".")[2] for prefix in quantized}
    told = [
        prefix if _last(prefix) in lasts else _last(prefix) for prefix in dense if prefix not in quantized
    ]
    return [*dict.fromkeys(told)]


def _last(name: str) -> str:
    return name.rpartition(".")[2]
