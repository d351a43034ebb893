"""Configs of the speculators library, rewritten as vLLM rewrites them.

Source: vLLM 0.33.0 `transformers_utils/configs/speculators/base.py` and `algos.py`.
"""

import copy
from collections.abc import Callable, Mapping
from typing import Any, Final

from dflash_audit.refusal import NotModelled, Refused

Table = dict[str, Any]

SELECTOR_KEYS: Final = ("conv_kernel_size", "conv_group_size", "selector_rank", "selector_top_k")
DSPARK_KEYS: Final = (
    "draft_vocab_size", "target_hidden_size", "mask_token_id", "markov_rank", "markov_head_type",
    "block_size", "enable_confidence_head", "confidence_head_with_markov", "use_aux_hidden_state",
)  # fmt: skip
"""What a config of each type gives its draft, beyond what all do."""


def is_speculators(config: Mapping[str, Any]) -> bool:
    """Whether vLLM reads a config.json as one of that library."""
    return config.get("model_type") is None and config.get("speculators_config") is not None


def algorithm(config: Mapping[str, Any]) -> str:
    """The config's type; refused where vLLM knows none of that name."""
    said = config.get("speculators_model_type")
    if said in OTHER_TYPES:
        raise NotModelled(f"a speculators config of type {said}: no draft of DFlash's family")
    if not isinstance(said, str) or said not in TYPES:
        known = ", ".join((*OTHER_TYPES, *TYPES))
        raise Refused(f"speculators_model_type must be one of {known}, got {said!r}")
    return said


def rewritten(config: Mapping[str, Any]) -> Table:
    """The draft's config that vLLM makes of a config of speculators; every other key at the top is lost."""
    kind = algorithm(config)
    layer = config.get("transformer_layer_config", {})
    if not isinstance(layer, Mapping):
        raise Refused(f"transformer_layer_config must be an object, got {layer!r}")
    draft = copy.deepcopy(dict(layer))
    TYPES[kind](config, draft)
    return draft


def _aux_ids(config: Mapping[str, Any]) -> tuple[list[Any], list[int]]:
    """The tapped layers as written, and one less each."""
    ids = _needed(config, "aux_hidden_state_layer_ids")
    if not isinstance(ids, list) or not all(isinstance(layer, int | float) for layer in ids):
        raise Refused(f"aux_hidden_state_layer_ids must be a list of layers, got {ids!r}")
    return ids, [layer - 1 for layer in ids]


def _needed(config: Mapping[str, Any], key: str) -> Any:
    if key not in config:
        raise Refused(f"a speculators config of this type needs {key}")
    return config[key]


def _dflash(config: Mapping[str, Any], draft: Table) -> None:
    draft["architectures"] = ["DFlashDraftModel"]
    draft["draft_vocab_size"] = config.get("draft_vocab_size")
    if config.get("target_hidden_size") is not None:
        draft["target_hidden_size"] = config["target_hidden_size"]
    ids, shifted = _aux_ids(config)
    draft["eagle_aux_hidden_state_layer_ids"] = ids
    draft["dflash_config"] = {
        "mask_token_id": _needed(config, "mask_token_id"),
        "target_layer_ids": shifted,
        "sample_from_anchor": config.get("sample_from_anchor", False),
        "causal": not config.get("sliding_window_non_causal", True),
    }


def _dflash2(config: Mapping[str, Any], draft: Table) -> None:
    _dflash(config, draft)
    draft["architectures"] = ["DFlash2DraftModel"]
    given = {key: config[key] for key in SELECTOR_KEYS if config.get(key) is not None}
    draft["dflash_config"].update(given)


def _dspark(config: Mapping[str, Any], draft: Table) -> None:
    named = config.get("architectures") or []
    if isinstance(named, int | float) or any(isinstance(name, list | dict) for name in named):
        raise Refused(f"architectures must be a list of names, got {named!r}")
    kept = [name for name in named if name in ("Qwen3DSparkModel", "Qwen3OmniDSparkModel")]
    draft["architectures"] = kept or ["Qwen3DSparkModel"]
    anchor = config.get("sample_from_anchor", False)
    draft["sample_from_anchor"], draft["dspark_bonus_anchor"] = anchor, not anchor
    draft["eagle_aux_hidden_state_layer_ids"], draft["target_layer_ids"] = _aux_ids(config)
    draft.update({key: config[key] for key in DSPARK_KEYS if config.get(key) is not None})


OTHER_TYPES: Final = ("eagle3", "peagle")

TYPES: Final[Mapping[str, Callable[[Mapping[str, Any], Table], None]]] = {
    "dflash": _dflash,
    "dflash2": _dflash2,
    "dspark": _dspark,
}
"""`SUPPORTED_SPECULATORS_TYPES`, those of DFlash's family."""
