"""The word by which vLLM knows a config of the speculators library, where one of its two places has lost it.

Such a config is mended as what it is: written as another dialect it would lose the rope, the vocabulary
and the taps that stand where that dialect does not look.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dflash_audit.diagnosis.speculators import LAYER, marks
from dflash_audit.engines.vllm.speculators import TYPES
from dflash_audit.facts import Facts
from dflash_audit.repairs.edit import ABSENT, Edit, Proposal, edit

ALGORITHM: Final = "algorithm"
OBJECT: Final = "speculators_config"
WORD: Final = "speculators_model_type"

REST: Final = "No key tells what else stood in it: give it the proposal methods and the verifier again."


def propose(facts: Facts) -> Iterator[Proposal]:
    """The lost one of the two; and without a `model_type`, which hides the others from vLLM."""
    config = facts.checkpoint.config
    inner, word = config.get(OBJECT), config.get(WORD)
    told = inner.get(ALGORITHM) if isinstance(inner, Mapping) else None
    if word is None and _is_type(told):
        why = f"{OBJECT}.{ALGORITHM} says {told}, and vLLM reads it here."
        yield _one(edit(config, (WORD,), told, why))
    if inner is None and _is_type(word):
        why = f"{WORD} says {word}, and vLLM takes no config without this object for one of speculators."
        yield _one(edit(config, (OBJECT,), {ALGORITHM: word}, why, REST))
    if config.get("model_type") is not None and isinstance(config.get(LAYER), Mapping):
        why = f"vLLM does not look into {LAYER} where this key stands beside it."
        yield (Edit(("model_type",), config["model_type"], ABSENT, why),)


def other_dialect(config: Mapping[str, Any], proposal: Proposal) -> bool:
    """Whether a change gives a config of speculators keys at the top that it has elsewhere."""
    layer = config.get(LAYER)
    elsewhere = {"model_type", *(layer if isinstance(layer, Mapping) else ())}
    return bool(marks(config)) and any(
        len(each.path) == 1
        and each.path[0] in elsewhere
        and each.old in (ABSENT, None)
        and each.new is not ABSENT
        for each in proposal
    )


def _is_type(word: Any) -> bool:
    return isinstance(word, str) and word in TYPES


def _one(found: Edit | None) -> Proposal:
    return (found,) if found else ()
