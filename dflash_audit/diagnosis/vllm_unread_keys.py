"""The keys that vLLM does not read, and what that changes; no rule of its own.

Source: vLLM 0.33.0 `model_executor/models/qwen3_dflash.py` and the drafts beside it,
`models/beam/nvidia/dflash2.py`, `v1/worker/gpu/spec_decode`, searched for each key; `reader` names where
SGLang has it.
"""

from collections.abc import Mapping
from typing import Final

from dflash_audit.diagnosis.sglang_draft import BEAM, LAGUNA, Draft
from dflash_audit.diagnosis.unread_keys import (
    ANCHOR,
    ANCHOR_ELSEWHERE,
    NO_KEY,
    NORM_BEFORE_FC,
    SHIFTED,
    SINKS,
    SINKS_MEND,
    VALUE_SCALE,
    Matters,
    Reader,
    UnreadKey,
    nested_only,
    shifted,
)
from dflash_audit.diagnosis.vllm_draft import AS_SGLANG_NAMES_THEM, LAYERS_OF_THEIR_OWN, XPRESS_DRAFT

DFLASH2: Final = frozenset({"DFlash2DraftModel"})
SCALES_VALUES: Final = frozenset(AS_SGLANG_NAMES_THEM.values()) - LAYERS_OF_THEIR_OWN

OF_THEIR_OWN: Final = f"{BEAM} or {LAGUNA}"

SGLANG: Final = "SGLang 0.5.23"
IN_ATTENTION: Final = Reader(SGLANG, "`srt/models/dflash.py`, `DFlashAttention`")
IN_CONFIG: Final = Reader(SGLANG, "`srt/speculative/dflash_utils.py`, `parse_dflash_draft_config`")


def _gemma_norm(draft: Draft) -> str | None:
    return (
        "each norm of the draft multiplies by its weight alone"
        if draft.config.get("use_gemma_norm")
        else None
    )


def _sampled(draft: Draft) -> str | None:
    """As `shifted`; an XPress draft's key is read, and refused where it is true."""
    return None if draft.model_class == XPRESS_DRAFT else shifted("", "sample_from_anchor")(draft)


def _neox(draft: Draft) -> str | None:
    said = draft.config.get("rope_is_neox_style")
    if draft.model_class in LAYERS_OF_THEIR_OWN or said is None:
        return None
    taken = bool(draft.config.get("is_neox_style", True))
    return None if bool(said) is taken else f"they are rotated as is_neox_style {str(taken).lower()} says"


def _sinks(draft: Draft) -> str | None:
    built = draft.inner.get("attention_sink_bias", draft.config.get("add_swa_attention_sink_bias", False))
    on_disk = any(name.endswith(".attention_sink_bias") for name in draft.tensors)
    unread = draft.raw.get("attention_sink_bias") is True and on_disk and not built
    return "no sinks are built, and their tensors are refused" if unread else None


def _scaled_embedding(draft: Draft) -> str | None:
    scale = draft.inner.get("input_embedding_scale")
    unread = scale not in (None, 1) and draft.model_class not in DFLASH2
    return f"it is {scale}, and the embeddings are not scaled" if unread else None


def _value_scale(place: str) -> Matters:
    def matters(draft: Draft) -> str | None:
        scale = (draft.inner if place else draft.raw).get("attention_value_scale")
        unread = scale not in (None, 1) and draft.model_class in LAYERS_OF_THEIR_OWN
        return f"it is {scale}, and the values are not scaled" if unread else None

    return matters


def _multiplier(draft: Draft) -> str | None:
    value = draft.inner.get("output_multiplier")
    unread = value not in (None, 1) and draft.model_class == BEAM
    return f"it is {value}, and the logits are taken as they are" if unread else None


def _markov(key: str) -> Matters:
    """vLLM looks at the top alone, and refuses a draft of which it finds no rank there."""

    def matters(draft: Draft) -> str | None:
        inner = draft.raw.get("dspark_config")
        nested = isinstance(inner, Mapping) and inner.get(key) is not None
        return "it is looked for at the top alone" if nested and key not in draft.raw else None

    return matters


UNREAD: Final = (
    UnreadKey(
        "use_gemma_norm",
        "by which norms multiply by one more than their weight",
        "it is true",
        _gemma_norm,
        "Name SGLang 0.5.23 in the model card, or export the norms with one added to their weights and"
        " use_gemma_norm false, which every engine serves.",
        reader=IN_ATTENTION,
    ),
    UnreadKey(
        "rope_is_neox_style",
        "which says how the pairs of a head are rotated",
        f"is_neox_style, true if not given, says otherwise, in a draft that is no {OF_THEIR_OWN}",
        _neox,
        "Write is_neox_style with the same value beside it.",
        reader=IN_ATTENTION,
    ),
    UnreadKey(
        "attention_sink_bias",
        SINKS,
        "it is true and the sinks are there, without attention_sink_bias in dflash_config and"
        " add_swa_attention_sink_bias at the top",
        _sinks,
        SINKS_MEND,
    ),
    *(
        UnreadKey(
            f"{place}{key}",
            ANCHOR,
            SHIFTED,
            _sampled if (place, key) == ("", "sample_from_anchor") else shifted(place, key),
            NO_KEY + "serve the draft with an engine that samples the first row.",
        )
        # In dflash_config, sample_from_anchor is read, and refused where it is true.
        for place, key in (
            ("", "sample_from_anchor"),
            ("", "query_zero_predicts_next"),
            ("dflash_config.", "query_zero_predicts_next"),
        )
    ),
    *ANCHOR_ELSEWHERE,
    NORM_BEFORE_FC,
    UnreadKey(
        "dflash_config.input_embedding_scale",
        "which scales the embeddings of a block",
        "it is not 1, in any draft but a DFlash2DraftModel",
        _scaled_embedding,
        NO_KEY + "vLLM scales them in a DFlash2DraftModel alone.",
    ),
    UnreadKey(
        "dflash_config.output_multiplier",
        "which scales the logits of the selector",
        f"it is not 1, in a {BEAM}",
        _multiplier,
        NO_KEY + "serve the draft with an engine that reads it.",
        reader=IN_CONFIG,
    ),
    UnreadKey(
        "attention_value_scale",
        VALUE_SCALE,
        f"it is not 1, in any draft but a {OF_THEIR_OWN}, and dflash_config has none",
        nested_only("attention_value_scale", 1, SCALES_VALUES),
        "Move it into dflash_config.",
    ),
    *(
        UnreadKey(
            f"{place}attention_value_scale",
            VALUE_SCALE,
            f"it is not 1, in a {OF_THEIR_OWN}",
            _value_scale(place),
            NO_KEY + "serve the draft with an engine that reads dflash_config.attention_value_scale.",
            reader=reader,
        )
        for place, reader in (("", None), ("dflash_config.", IN_CONFIG))
    ),
    UnreadKey(
        "output_multiplier",
        "which scales the logits of the selector",
        "it is not 1, in a DFlash2DraftModel, and dflash_config has none",
        nested_only("output_multiplier", 1, DFLASH2),
        "Move it into dflash_config.",
    ),
    UnreadKey(
        "final_logit_softcapping",
        "which caps the logits of the selector",
        f"it is not 0, in a DFlash2DraftModel or a {BEAM}, and dflash_config has none",
        nested_only("final_logit_softcapping", 0, DFLASH2 | {BEAM}),
        "Move it into dflash_config.",
    ),
    UnreadKey(
        "dspark_config.markov_rank",
        "which is the rank of the Markov head",
        "the top has none",
        _markov("markov_rank"),
        "Set markov_rank at the top of config.json to the same value.",
    ),
)
