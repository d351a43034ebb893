"""Families of drafts that vLLM has no code for, under whatever names their tensors come.

Source: vLLM 0.33.0 `model_executor/models/qwen3_dflash.py`, `qwen3_dspark.py` (a vanilla Markov
head alone) and `qwen2.py` (`Qwen2MLP` takes silu alone).
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, NoReturn

from dflash_audit.engine_run import EngineRun
from dflash_audit.engines.vllm.fields import nested
from dflash_audit.refusal import NotModelled

SGLANG: Final = "SGLang"
ACTIVATION_OF_SGLANG: Final = "swigluoai"


class Unserved(NamedTuple):
    """What of a draft the engine has nothing for, and the engine that has it, where one is known."""

    family: str
    served_by: str | None


def unknown_class(config: Mapping[str, Any]) -> str | None:
    """The family of a draft whose class the engine does not know; None where its config.json names none.

    What names no class is a fault of the config, and no family.
    """
    named = config.get("architectures")
    if not isinstance(named, list) or not named or not all(isinstance(name, str) for name in named):
        return None
    return f"drafts of the class {', '.join(named)}"


def no_forward(run: EngineRun) -> NoReturn:
    """What the draft of `run` computes, which nothing here knows; see `Engine.forward`."""
    del run
    raise NotModelled("the forward pass of vLLM's drafts is not modelled: warm up on an engine of SGLang")


def unserved(config: Mapping[str, Any], model_class: str) -> Unserved | None:
    """None where the engine has code for all that the config asks for."""
    inner = nested(config)
    projector = inner.get("projector_type", config.get("projector_type"))
    if projector == "domino":
        return Unserved("drafts with a Domino projector", SGLANG)
    kind = config.get("markov_head_type")
    if "DSpark" in model_class and isinstance(kind, str) and kind.lower() != "vanilla":
        return Unserved(f"DSpark drafts with a Markov head of type {kind}", SGLANG)
    # A Gemma 4 draft's own key is another, and its layers take other activations.
    activation = config.get("hidden_act") if model_class != "Gemma4DSparkForCausalLM" else None
    if isinstance(activation, str) and activation != "silu":
        served_by = SGLANG if activation == ACTIVATION_OF_SGLANG else None
        return Unserved(f"drafts with the activation {activation}", served_by)
    return None
