"""The keys that SGLang does not read, what they mean elsewhere, and when that matters; no rule of its own.

Source: SGLang 0.5.23 `srt/models/dflash.py`, `srt/models/dspark.py`,
`srt/speculative/dflash_utils.py`, `srt/speculative/dflash_worker_v2.py`,
`srt/speculative/dspark_components/dspark_config.py`, searched for each key. `reader` names where the engine
that reads one has it.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from dflash_audit.diagnosis.nemotron import near_miss
from dflash_audit.diagnosis.sglang_draft import LAGUNA, SELECTORS, Draft, number, whole
from dflash_audit.finding import Severity
from dflash_audit.fold import ranges

Matters = Callable[[Draft], str | None]

NO_KEY: Final = "No key of this engine says the same: "


class Reader(NamedTuple):
    """An engine that reads a key, as a sentence names it, and the place in its source."""

    engine: str
    source: str


class UnreadKey(NamedTuple):
    """A key and where it stands; `matters` gives the consequence for a draft, None where there is none.

    `when` says in words where there is one: how the key, or what stands beside it, decides.
    `reader` is the engine of this audit that reads it, None where none does.
    """

    key: str
    meaning: str
    when: str
    matters: Matters
    mend: str
    severity: Severity = "warning"
    reader: Reader | None = None


def _causal(draft: Draft) -> str | None:
    value = draft.inner.get("causal")
    if not isinstance(value, bool):
        return None
    others = [i for i, layer in enumerate(draft.attention()) if layer.causal is not value]
    if not others:
        return None
    how = "the whole block" if value else "no later token of the block"
    return f"it is {str(value).lower()}, and the tokens see {how} in layers {ranges(others)}"


def _use_swa(draft: Draft) -> str | None:
    layers = draft.attention()
    if draft.inner.get("use_swa") is not True or not layers or any(layer.sliding for layer in layers):
        return None
    return "layer_types names no sliding layer, so every layer attends to the whole context"


def _window(draft: Draft) -> str | None:
    theirs, own = whole(draft.inner.get("swa_window_size")), whole(draft.config.get("sliding_window"))
    slides = any(layer.sliding for layer in draft.attention())
    if theirs is None or own is None or theirs == own or not slides:
        return None
    return f"it is {theirs}, and the sliding layers see the {own} of sliding_window"


def _is_causal(draft: Draft) -> str | None:
    said = draft.config.get("is_causal")
    unread = [layer for layer in draft.attention() if layer.causal is not bool(said)]
    return "it is read with layer_types alone, so no layer is causal" if said and unread else None


def _target_hidden_size(draft: Draft) -> str | None:
    theirs, own = whole(draft.config.get("target_hidden_size")), whole(draft.config.get("hidden_size"))
    if theirs is None or theirs == own:
        return None
    return f"fc is built for features of {own} a tapped layer, and the target's have {theirs}"


def sinks(key: str) -> Matters:
    def matters(draft: Draft) -> str | None:
        on_disk = any(name.endswith(".attention_sink_bias") for name in draft.tensors)
        built = draft.nemotron or draft.inner.get("attention_sink_bias") is True
        unread = draft.config.get(key) and on_disk and not built
        return "no sinks are built, and their tensors are dropped" if unread else None

    return matters


def shifted(place: str, key: str) -> Matters:
    """A DFlash draft never predicts from the first row of a block."""

    def matters(draft: Draft) -> str | None:
        if draft.dspark or (draft.inner if place else draft.config).get(key) is not True:
            return None
        return "a block's first row is not sampled, so every token is shifted by one"

    return matters


def _anchor(place: str, key: str) -> Matters:
    """A DSpark draft does by `sample_from_anchor` at the top, which is true where it is not given."""

    def matters(draft: Draft) -> str | None:
        value = (draft.inner if place else draft.config).get(key)
        own = bool(draft.config.get("sample_from_anchor", True))
        if not draft.dspark or not isinstance(value, bool) or value is own:
            return None
        return f"it is {str(value).lower()}, and the engine goes by sample_from_anchor {str(own).lower()}"

    return matters


def rotary_factor(draft: Draft) -> str | None:
    rope = draft.config.get("rope_parameters")
    factor = rope.get("partial_rotary_factor") if isinstance(rope, Mapping) else None
    factor = number(factor)
    # vLLM refuses what is not above zero, and no engine takes it for a part.
    partial = factor is not None and 0 < factor < 1
    if not partial or "rope_dim" in (rope or {}) or draft.raw.get("partial_rotary_factor") is not None:
        return None
    return f"it is {factor:g}, and the whole of each head is rotated, as training with Transformers does"


def _draft_vocabulary(draft: Draft) -> str | None:
    own, whole_size = whole(draft.config.get("draft_vocab_size")), whole(draft.config.get("vocab_size"))
    if own is None or own == whole_size:
        return None
    parts = [name for name in ("lm_head.weight", "d2t", "t2d") if name in draft.tensors]
    unused = f" (unused: {', '.join(parts)})" if parts else ""
    return f"it is {own}, and the draft is decoded over all {whole_size} rows of the target's head{unused}"


def _own_head(key: str) -> Matters:
    def matters(draft: Draft) -> str | None:
        return _borrowed(draft, "lm_head", "head") if draft.config.get(key) is True else None

    return matters


def _own_embedding(draft: Draft) -> str | None:
    # A near miss is told of by a rule of its own, and mended by another key.
    unread = draft.config.get("has_embed_tokens") is True and not draft.nemotron
    if unread and near_miss(draft.config) is not None:
        return None
    return _borrowed(draft, "embed_tokens", "embedding") if unread else None


def _borrowed(draft: Draft, module: str, what: str) -> str:
    """What an engine does that takes a module from the target, whether the draft has its own or not."""
    if any(name.startswith(f"{module}.") for name in draft.tensors):
        return f"the target's {what} is used"
    return f"the checkpoint holds no {module}, and the target's {what} is used"


def _norm_before_fc(draft: Draft) -> str | None:
    unread = draft.config.get("norm_before_fc") is True and draft.model_class != LAGUNA
    return "the target's features go into fc as they are" if unread else None


def _input_scale(dflash2: bool) -> Matters:
    """vLLM reads it of DFlash2 drafts alone."""

    def matters(draft: Draft) -> str | None:
        scale = draft.inner.get("input_embedding_scale")
        unread = scale not in (None, 1) and (draft.model_class == "DFlash2DraftModel") is dflash2
        return f"it is {scale}, and the embeddings are not scaled" if unread else None

    return matters


def nested_only(key: str, default: float, classes: frozenset[str] | None = None) -> Matters:
    def matters(draft: Draft) -> str | None:
        value = draft.raw.get(key)
        built = classes is None or draft.model_class in classes
        if value in (None, default) or key in draft.inner or not built:
            return None
        return f"it is {value}, and is looked for in dflash_config alone"

    return matters


def _confidence(place: str) -> Matters:
    def matters(draft: Draft) -> str | None:
        inner = draft.raw.get(place)
        nested = isinstance(inner, Mapping) and "enable_confidence_head" in inner
        return "it is looked for at the top alone" if draft.dspark and nested else None

    return matters


def _no_confidence_head(draft: Draft) -> str | None:
    asked = draft.dspark and draft.config.get("enable_confidence_head") is True
    if not asked or any(re.match(r"confidence_head\.", name) for name in draft.tensors):
        return None
    return "the checkpoint holds none, and a server with a SGLANG_RAGGED_VERIFY_MODE but static refuses it"


VLLM: Final = "vLLM 0.33.0"
MODELS: Final = "model_executor/models"
IN_ATTENTION: Final = Reader(VLLM, f"`{MODELS}/qwen3_dflash.py`, `_resolve_layer_attention`")
IN_LAYER: Final = Reader(VLLM, f"`{MODELS}/qwen3_dflash.py`, `DFlashQwen3DecoderLayer`")
IN_MODEL: Final = Reader(VLLM, f"`{MODELS}/qwen3_dflash.py`, `DFlashQwen3ForCausalLM`")
IN_FC: Final = Reader(VLLM, f"`{MODELS}/qwen3_dflash.py`, `_get_dflash_fc_input_size`")
IN_ROPE: Final = Reader(VLLM, "`model_executor/layers/rotary_embedding/__init__.py`, `get_rope`")
IN_DFLASH2: Final = Reader(VLLM, f"`{MODELS}/qwen3_dflash2.py`, `DFlash2Qwen3Model`")

ATTENTION: Final = "which says whether the tokens of a block see later ones"
SINKS: Final = "which gives the attention its sinks"
ROTATED: Final = "which is the part of each head that is rotated"
VALUE_SCALE: Final = "which scales the values of the attention"
ANCHOR: Final = "which says whether the first row of a block predicts a token"
NO_SINKS: Final = (
    "it is true and the sinks are there, in a draft that is no Nemotron 3.5 one, without attention_sink_bias"
    " true in dflash_config"
)
SHIFTED: Final = "it is true, in a draft that is no DSpark one"
ROTATES_A_PART: Final = (
    "it is above 0 and below 1, without rope_dim beside it and partial_rotary_factor at the top"
)
SINKS_MEND: Final = "Set attention_sink_bias to true in dflash_config."

ANCHOR_ELSEWHERE: Final = tuple(
    UnreadKey(
        f"{place}{key}",
        ANCHOR,
        "a DSpark draft has another sample_from_anchor at the top, which is true if not given",
        _anchor(place, key),
        "Set sample_from_anchor at the top of config.json to the same value.",
    )
    for place, key in (
        ("dflash_config.", "sample_from_anchor"),
        ("dflash_config.", "query_zero_predicts_next"),
        ("", "query_zero_predicts_next"),
    )
)
"""Of a DSpark draft: the keys that every engine passes over for `sample_from_anchor` at the top."""

NORM_BEFORE_FC: Final = UnreadKey(
    "norm_before_fc",
    "which says that the target's features are normed before fc",
    f"it is true, in a draft that is no {LAGUNA}",
    _norm_before_fc,
    f"{NO_KEY}only {LAGUNA} norms each feature, with aux_hidden_norms.",
)

UNREAD: Final = (
    UnreadKey(
        "dflash_config.causal",
        ATTENTION,
        "a layer attends otherwise by layer_types and is_causal",
        _causal,
        "Set is_causal at the top of config.json to the same value, beside layer_types.",
        reader=IN_ATTENTION,
    ),
    UnreadKey(
        "dflash_config.use_swa",
        "which makes the layers slide",
        "it is true, and layer_types names no sliding layer",
        _use_swa,
        "Name each layer sliding_attention in layer_types, and set sliding_window and use_sliding_window;"
        " a block that sees its later tokens needs is_causal false too.",
        reader=IN_ATTENTION,
    ),
    UnreadKey(
        "dflash_config.swa_window_size",
        "which is the window of the sliding layers",
        "a layer slides, and sliding_window is another size",
        _window,
        "Set sliding_window to the window that the draft was trained with.",
        reader=IN_ATTENTION,
    ),
    UnreadKey(
        "is_causal",
        ATTENTION,
        "it is true, and there is no layer_types",
        _is_causal,
        "Give layer_types, an entry a layer.",
        reader=IN_ATTENTION,
    ),
    UnreadKey(
        "target_hidden_size",
        "which is the width of the target",
        "it is another width than hidden_size",
        _target_hidden_size,
        NO_KEY + "SGLang serves a draft beside a target of its own width.",
        reader=IN_FC,
    ),
    UnreadKey(
        "add_swa_attention_sink_bias",
        SINKS,
        NO_SINKS,
        sinks("add_swa_attention_sink_bias"),
        SINKS_MEND,
        reader=IN_LAYER,
    ),
    UnreadKey("attention_sink_bias", SINKS, NO_SINKS, sinks("attention_sink_bias"), SINKS_MEND),
    *(
        UnreadKey(
            f"{place}{key}",
            ANCHOR,
            SHIFTED,
            shifted(place, key),
            NO_KEY + "serve the draft with an engine that samples the first row.",
        )
        for place in ("", "dflash_config.")
        for key in ("sample_from_anchor", "query_zero_predicts_next")
    ),
    *ANCHOR_ELSEWHERE,
    UnreadKey(
        "rope_parameters.partial_rotary_factor",
        ROTATED,
        ROTATES_A_PART,
        rotary_factor,
        "If the draft was trained to rotate a part, set rope_dim in rope_parameters to its size.",
        "note",
        IN_ROPE,
    ),
    UnreadKey(
        "draft_vocab_size",
        "which is the size of the draft's own vocabulary",
        "it is another size than vocab_size",
        _draft_vocabulary,
        NO_KEY + "export the draft over the target's whole vocabulary.",
        reader=IN_MODEL,
    ),
    *(
        UnreadKey(
            key,
            "which says that the draft has a head of its own",
            "it is true",
            _own_head(key),
            NO_KEY + "train the draft on the target's head, or serve it with an engine that takes its own.",
            reader=reader,
        )
        for key, reader in (("has_own_lm_head", IN_MODEL), ("has_lm_head", None))
    ),
    UnreadKey(
        "has_embed_tokens",
        "which says that the draft has an embedding of its own",
        "it is true, and the draft is no Nemotron 3.5 one, nor one but for a key",
        _own_embedding,
        "SGLang reads it of Nemotron 3.5 drafts alone: train the draft on the target's embedding, or, if it"
        " was, set the key to false.",
    ),
    NORM_BEFORE_FC,
    *(
        UnreadKey(
            "dflash_config.input_embedding_scale",
            "which scales the embeddings of a block",
            f"it is not 1, in {'a' if dflash2 else 'any draft but a'} DFlash2DraftModel",
            _input_scale(dflash2),
            NO_KEY + mend,
            reader=reader,
        )
        for dflash2, mend, reader in (
            (True, "serve the draft with an engine that reads it.", IN_DFLASH2),
            (False, "only vLLM scales them, in a DFlash2DraftModel alone.", None),
        )
    ),
    UnreadKey(
        "attention_value_scale",
        VALUE_SCALE,
        "it is not 1, and dflash_config has none",
        nested_only("attention_value_scale", 1),
        "Move it into dflash_config.",
    ),
    UnreadKey(
        "output_multiplier",
        "which scales the logits of the selector",
        "it is not 1, in a draft with a selector, and dflash_config has none",
        nested_only("output_multiplier", 1, SELECTORS),
        "Move it into dflash_config.",
    ),
    UnreadKey(
        "final_logit_softcapping",
        "which caps the logits of the selector",
        "it is not 0, in a draft with a selector, and dflash_config has none",
        nested_only("final_logit_softcapping", 0, SELECTORS),
        "Move it into dflash_config.",
    ),
    *(
        UnreadKey(
            f"{place}.enable_confidence_head",
            "which says that the draft has a confidence head",
            "a DSpark draft has it there",
            _confidence(place),
            "Move it to the top of config.json; the default server builds no confidence head either way.",
            "note",
        )
        for place in ("dspark_config", "dflash_config")
    ),
    UnreadKey(
        "enable_confidence_head",
        "which says that the draft has a confidence head",
        "it is true, in a DSpark draft without the tensors of one",
        _no_confidence_head,
        "Leave SGLANG_RAGGED_VERIFY_MODE at static, or export the confidence head too.",
        "note",
    ),
)
