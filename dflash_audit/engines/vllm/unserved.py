"""Families of drafts that vLLM has no code for, under whatever names their tensors come.

Source: vLLM 0.33.0 `model_executor/models/qwen3_dflash.py`, `qwen3_dspark.py` (a vanilla Markov
head alone) and `qwen2.py` (`Qwen2MLP` takes silu alone).
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, NoReturn

from dflash_audit.engine_run import EngineRun
from dflash_audit.engines.vllm.architectures import GEMMA4
from dflash_audit.engines.vllm.fields import nested
from dflash_audit.refusal import NotModelled

SGLANG: Final = "SGLang"
ACTIVATION_OF_SGLANG: Final = "swigluoai"


class Unserved(NamedTuple):
    """What of a draft the engine has nothing for, and the engine that has it, where one is known."""

    family: str
    served_by: str | None


SGLANG_ALONE: Final = frozenset(
    (
        "DSparkMiniMaxDraftModel",
        "DeepseekV4ForCausalLMDSpark",
        "Lfm2DSparkDraftModel",
        "LingDSparkModel",
        "MiniMaxDFlash2DraftModel",
    )
)
"""Draft classes of SGLang 0.5.23 that vLLM 0.33.0 has not.

Source: SGLang 0.5.23 `EntryClass` in `srt/models/`; vLLM 0.33.0 `model_executor/models/registry.py`.
"""


def unknown_class(config: Mapping[str, Any]) -> Unserved | None:
    """The family of a draft whose class SGLang has and this engine has not.

    None for a name that neither has: that is a fault of the config, and no family.
    """
    given = config.get("architectures")
    names = [name for name in given if isinstance(name, str)] if isinstance(given, list) else []
    known = next((name for name in names if name in SGLANG_ALONE), None)
    return None if known is None else Unserved(f"drafts of the class {known}", SGLANG)


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
    activation = config.get("hidden_act") if model_class != GEMMA4 else None
    if isinstance(activation, str) and activation != "silu":
        served_by = SGLANG if activation == ACTIVATION_OF_SGLANG else None
        return Unserved(f"drafts with the activation {activation}", served_by)
    return None
