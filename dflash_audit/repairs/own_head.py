"""What a config says of a head or a vocabulary of the draft's own, where the checkpoint has neither.

Source: vLLM 0.33.0 `v1/worker/gpu/spec_decode/dflash/utils.py`, `load_dflash_model`;
`model_executor/models/laguna_dflash.py`, `DFlashLagunaForCausalLM`.
"""

from collections.abc import Iterator
from typing import Final

from dflash_audit.diagnosis.vllm_draft import is_vllm
from dflash_audit.engines.vllm.architectures import LAGUNA
from dflash_audit.facts import Facts
from dflash_audit.repairs.edit import ABSENT, Proposal, edit

HEAD: Final = "has_own_lm_head"
VOCABULARY: Final = "draft_vocab_size"


def propose(facts: Facts) -> Iterator[Proposal]:
    """The key without its head, and the vocabulary of a Laguna draft that has the whole one."""
    config, names = facts.checkpoint.config, [tensor.name for tensor in facts.checkpoint.tensors]
    if config.get(HEAD) and not any(name.startswith("lm_head.") for name in names):
        found = edit(config, (HEAD,), ABSENT, "The checkpoint holds no lm_head, and the target's is taken.")
        yield (found,) if found else ()
    laguna = any(is_vllm(run.engine) and run.model_class == LAGUNA for run in facts.runs)
    if laguna and config.get(VOCABULARY) is None and "d2t" not in names and "vocab_size" in config:
        why = "vLLM wants it said; the checkpoint holds no d2t, so the draft's vocabulary is the whole one."
        found = edit(config, (VOCABULARY,), config["vocab_size"], why)
        yield (found,) if found else ()
