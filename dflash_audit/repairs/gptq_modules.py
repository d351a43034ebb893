"""The names of quantized layers in a GPTQ config, in a form that vLLM finds in the names that it asks for.

Source: vLLM 0.33.0 `model_executor/layers/quantization/auto_gptq.py`, `maybe_update_config`: without the key
it takes the names off the tensors, where a draft's layers have other numbers than in the names that it
asks for. `utils/gptq_utils.py`, `is_layer_gptq_quantized`: an entry counts anywhere in a name. SGLang does
not read the key.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from dflash_audit.diagnosis.stored import State, faults, state_of, stored_in
from dflash_audit.diagnosis.vllm_draft import is_vllm
from dflash_audit.facts import Facts
from dflash_audit.repairs.edit import Proposal, edit
from dflash_audit.tree import Modules

OWN: Final = "quantization_config"
PATH: Final = (OWN, "modules_in_block_to_quantize")
WHY: Final = (
    "vLLM asks for a draft's layers under other numbers than the tensors have, and finds none of them without"
    " this list."
)


def propose(facts: Facts) -> Iterator[Proposal]:
    """The last parts of the names of all quantized layers, where no dense layer has the same."""
    own = facts.checkpoint.config.get(OWN)
    if not isinstance(own, Mapping) or str(own.get("quant_method", "")).lower() != "gptq":
        return
    failing = (run for run in facts.runs if is_vllm(run.engine) and faults(run))
    for run in failing:
        names: dict[State, dict[str, None]] = {state: {} for state in State}
        modules = run.tree.modules if run.tree else Modules()
        for name, parts in stored_in(modules, facts.checkpoint.tensors).items():
            prefix, state = modules[name].prefix, state_of(parts)
            if prefix is not None and state is not None:
                names[state][prefix.rpartition(".")[2]] = None
        listed = [name for name in names[State.QUANTIZED] if name not in names[State.DENSE]]
        found = edit(facts.checkpoint.config, PATH, listed, WHY) if listed else None
        yield (found,) if found else ()
