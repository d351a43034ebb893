"""Rules of an AutoRound config (`extra_config`) that leave dense what is dense on disk, and that alone.

Source: SGLang 0.5.23 `srt/layers/quantization/auto_round.py`, `get_layer_config`: an exact name
counts before a pattern, and 16 bits leave a layer dense.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dflash_audit.diagnosis.stored import faults
from dflash_audit.facts import Facts
from dflash_audit.repairs.edit import Proposal, edit
from dflash_audit.repairs.gptq_rules import names_of_dense
from dflash_audit.repairs.what_if import with_edits

OWN: Final = "quantization_config"
RULES: Final = (OWN, "extra_config")
DENSE: Final[Mapping[str, Any]] = {"bits": 16, "data_type": "float"}
EVERYTHING: Final[Mapping[str, Any]] = {".*": DENSE}


def propose(facts: Facts) -> Iterator[Proposal]:
    """Without the rules for 16 bits that are there, and with one for all dense layers."""
    config = facts.checkpoint.config
    own = config.get(OWN)
    if not isinstance(own, Mapping) or str(own.get("quant_method", "")).lower() != "auto-round":
        return
    if not any(faults(run) for run in facts.runs):
        return
    bare = edit(config, RULES, EVERYTHING, "")
    names = names_of_dense(with_edits(facts, (bare,) if bare else ()))
    written = own.get(RULES[1])
    rules = written.items() if isinstance(written, Mapping) else ()
    kept = {name: rule for name, rule in rules if not _dense(rule)}
    pattern = rf"(.*\.)?({'|'.join(name.replace('.', chr(92) + '.') for name in names)})"
    why = "With this list the engine builds dense the layers that are dense on disk, and no other."
    found = edit(config, RULES, {**({pattern: DENSE} if names else {}), **kept}, why)
    yield (found,) if found else ()


def _dense(rule: Any) -> bool:
    bits = rule.get("bits") if isinstance(rule, Mapping) else None
    return isinstance(bits, int | float) and bits >= DENSE["bits"]
