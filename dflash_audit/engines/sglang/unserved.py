"""Families of drafts that a version of SGLang has no code for, under whatever names their tensors come.

Source: SGLang 0.5.19 and 0.5.23 `srt/models/dflash.py`, `srt/speculative/dflash_utils.py` and the classes of
`srt/models/`; vLLM 0.33.0 `model_executor/models/registry.py`.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from dflash_audit.engines.sglang.profile import RELEASE_0_5_23, Profile

VLLM_ALONE: Final = frozenset(
    (
        "DFlashMuseGlimmerAssistantModel",
        "DFlashQwen3XPressModel",
        "Gemma4DSparkModel",
        "K3DSparkModel",
        "MuseSparkDSparkModel",
        "Qwen3OmniDSparkModel",
        "Qwen3XPressModel",
    )
)
"""Draft classes of vLLM that no release of SGLang has."""

LATER: Final = "SGLang 0.5.23 or later"
VLLM: Final = "vLLM"


class Unserved(NamedTuple):
    """What of a draft a version has nothing for, and what has it."""

    family: str
    served_by: str


def unserved(profile: Profile, config: Mapping[str, Any]) -> Unserved | None:
    """None where this version has code for all that config.json asks for."""
    names = config.get("architectures")
    for name in names if isinstance(names, list) else ():
        if isinstance(name, str) and name in profile.lacks | VLLM_ALONE:
            return Unserved(f"drafts of the class {name}", LATER if name in profile.lacks else VLLM)
    activation = config.get("hidden_act")
    if activation in RELEASE_0_5_23.activations and activation not in profile.activations:
        return Unserved(f"drafts with the activation {activation}", LATER)
    inner = config.get("dflash_config")
    unread = profile.unread.get("dflash_config", frozenset())
    if not isinstance(inner, Mapping) or not unread:
        return None
    projector = inner.get("projector_type", config.get("projector_type"))
    if "projector_type" in unread and projector == "domino":
        return Unserved("drafts with a Domino projector", LATER)
    if "attention_sink_bias" in unread and inner.get("attention_sink_bias") is True:
        return Unserved("plain drafts with attention sinks", LATER)
    return None
