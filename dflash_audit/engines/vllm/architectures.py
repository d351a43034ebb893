"""Which class a draft is built with: its `architectures`, as the speculative config rewrites them.

Source: vLLM 0.33.0 `config/speculative.py`, `transformers_utils/configs/eagle.py`,
`model_executor/models/registry.py`.
"""

from collections.abc import Mapping
from typing import Any, Final

from dflash_audit.refusal import NotModelled, Refused

PLAIN: Final = "DFlashQwen3ForCausalLM"
DFLASH2: Final = "DFlash2Qwen3ForCausalLM"
BEAM: Final = "DFlash2BeamForCausalLM"
LAGUNA: Final = "DFlashLagunaForCausalLM"
LILICORR: Final = "LiLiCorrForCausalLM"
XPRESS: Final = "Qwen3XPressForCausalLM"
DSPARK_OF_QWEN3: Final = "Qwen3DSparkForCausalLM"
GEMMA4: Final = "Gemma4DSparkForCausalLM"
"""The engine's classes of drafts, of which more than one file tells."""

LOADED_AS_DSPARK: Final = frozenset((DSPARK_OF_QWEN3, GEMMA4, XPRESS))
"""Classes that take the target's head unless the model itself says that one of its own came.

Source: vLLM 0.33.0 `v1/worker/gpu/spec_decode/dspark/utils.py`, `load_dspark_model`; the others also go by
`has_own_lm_head` in the config (`dflash/utils.py`, `load_dflash_model`).
"""

CLASSES: Final[Mapping[str, str]] = {
    "DFlashDraftModel": PLAIN,
    "MuseGlimmerAssistantModel": PLAIN,
    "DFlashMuseGlimmerAssistantModel": PLAIN,
    "DFlash2DraftModel": DFLASH2,
    "DFlash2BeamDraftModel": BEAM,
    "LiLiCorrDraftModel": LILICORR,
    "DFlashLagunaForCausalLM": LAGUNA,
    "Qwen3XPressModel": XPRESS,
    "DFlashQwen3XPressModel": XPRESS,
    "Qwen3DSparkModel": DSPARK_OF_QWEN3,
    "Qwen3OmniDSparkModel": DSPARK_OF_QWEN3,
    "Gemma4DSparkModel": GEMMA4,
}
"""Architecture -> class, of the drafts that the audit replays."""

NOT_REPLAYED: Final = frozenset(
    ("K3DSparkModel", "MuseSparkDSparkModel", "DSparkDraftModel", "DSparkV41DraftModel")
)
"""Drafts of this family whose trees are their target's, of which the audit knows none."""

OWN_CONFIGS: Final = ("k3_dspark", "muse_spark_dspark")
"""Model types of such drafts that vLLM reads by a config class of its own, which transformers does not know.

Source: vLLM 0.33.0 `transformers_utils/config.py`, `_CONFIG_REGISTRY`.
"""

DSPARK: Final = frozenset(
    ("Qwen3DSparkModel", "Qwen3OmniDSparkModel", "MuseSparkDSparkModel", "Gemma4DSparkModel", "K3DSparkModel")
)
"""Architectures that the method dspark leaves as they are."""

SERVED_AS_DSPARK: Final = DSPARK | {"DSparkDraftModel", "DSparkV41DraftModel", "LingDSparkModel"}
"""Architectures for which a server is given the method dspark; every other is given dflash."""

MUSE: Final = "muse_glimmer_assistant"
"""The one model type of a draft whose class vLLM finds without `architectures`.

Source: vLLM 0.33.0 `transformers_utils/config.py`, which takes transformers' `MODEL_MAPPING_NAMES` there.
"""

MUSE_VOCABULARY: Final = 202048
"""The vocabulary of a Muse Glimmer draft whose config names none."""


def method(architectures: list[str]) -> str:
    """The speculative method under which such a draft is served."""
    return "dspark" if SERVED_AS_DSPARK.intersection(architectures[:1]) else "dflash"


def names(config: Mapping[str, Any]) -> list[str]:
    """The names in `architectures`; refused where there are none, but for a model type that says it."""
    named = config.get("architectures")
    if not named and config.get("model_type") == MUSE:
        return ["MuseGlimmerAssistantModel"]
    if not isinstance(named, list) or not named or not all(isinstance(name, str) for name in named):
        raise Refused(f"architectures is not a list of names: {named!r}")
    return named


def completed(config: dict[str, Any]) -> dict[str, Any]:
    """The config with what vLLM adds to a Muse Glimmer draft's, which leaves its target's to it."""
    if config.get("model_type") != MUSE:
        return config
    given = config.get("dflash_config") or {}
    if not isinstance(given, Mapping):
        raise Refused(f"dflash_config is not an object: {given!r}")
    return {"vocab_size": MUSE_VOCABULARY} | config | {"dflash_config": {"causal": False, **given}}


def as_dflash(architectures: list[str]) -> list[str]:
    """The names that `EAGLEConfig` makes of them."""
    return [
        name
        if name.startswith("DFlash") or name.endswith("DFlash") or name == "LiLiCorrDraftModel"
        else f"DFlash{name}"
        for name in architectures
    ]


def as_dspark(architectures: list[str], model_type: Any) -> list[str]:
    """The names that the method dspark makes of them."""
    if "DSparkDraftModel" in architectures and model_type == "qwen3":
        return ["Qwen3DSparkModel"]
    if not (CLASSES.keys() | NOT_REPLAYED).intersection(architectures):
        return architectures
    if not DSPARK.intersection(architectures):
        raise NotModelled(
            f"{architectures[0]} is served as the DSpark draft inside a DeepSeek-V4 checkpoint, "
            "which the audit does not replay"
        )
    return architectures


def model_class(architectures: list[str], known: frozenset[str]) -> str:
    """The class of the first name that vLLM has one for; `known` are the names that the config gave.

    Raises:
        Refused: it has none for any of them.
        NotModelled: it has one that the audit does not replay.
    """
    for name in architectures:
        if name in CLASSES:
            return CLASSES[name]
        if name in NOT_REPLAYED:
            raise NotModelled(f"{name} is a class of this engine that the audit does not replay")
    said = ", ".join(sorted(known))
    raise Refused(f"{said} is no draft architecture of this engine: it would look for {architectures[0]}")
