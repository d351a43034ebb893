"""The keys that SGLang 0.5.19 does not read and 0.5.23 does, and what that changes; no rule of its own.

A key that no SGLang reads may have its value in one that 0.5.23 reads and 0.5.19 does not: `UNREAD_BY_ANY` is
the table of those that none reads, with what is to be done for 0.5.19.

Source: SGLang 0.5.19 `srt/models/dflash.py` and `srt/speculative/dflash_utils.py`, searched for each key;
`reader` names where the later release has it.
"""

from collections.abc import Mapping
from typing import Any, Final

from dflash_audit.diagnosis import unread_keys
from dflash_audit.diagnosis.sglang_draft import Draft, number, whole
from dflash_audit.diagnosis.unread_keys import (
    ROTATED,
    SINKS,
    VALUE_SCALE,
    Reader,
    UnreadKey,
)

ENGINE: Final = "sglang-0.5.19"

LATER: Final = "SGLang 0.5.23"
IN_ATTENTION: Final = Reader(LATER, "`srt/models/dflash.py`, `DFlashAttention`")
IN_CONFIG: Final = Reader(LATER, "`srt/speculative/dflash_utils.py`, `parse_dflash_draft_config`")
UPDATE: Final = "Serve the draft with SGLang 0.5.23 or later."
UPDATE_FOR_SINKS: Final = (
    "Serve the draft with SGLang 0.5.23 or later, with attention_sink_bias true in dflash_config."
)


def _inner(draft: Draft) -> Mapping[str, Any]:
    """`dflash_config` as it is written."""
    inner = draft.raw.get("dflash_config")
    return inner if isinstance(inner, Mapping) else {}


def _rope(draft: Draft) -> Mapping[str, Any]:
    """The rotary parameters as they are written."""
    written = (draft.raw.get(key) for key in ("rope_parameters", "rope_scaling"))
    return next((value for value in written if isinstance(value, Mapping)), {})


def _gemma_norm(draft: Draft) -> str | None:
    return (
        "each norm of the draft multiplies by its weight alone" if draft.raw.get("use_gemma_norm") else None
    )


def _domino(draft: Draft) -> str | None:
    named = _inner(draft).get("projector_type", draft.raw.get("projector_type"))
    return "none is built, and its tensors are dropped" if named == "domino" else None


def _sinks(draft: Draft) -> str | None:
    unread = _inner(draft).get("attention_sink_bias") is True and not draft.nemotron
    return "no sinks are built, and their tensors are dropped" if unread else None


def _value_scale(draft: Draft) -> str | None:
    scale = _inner(draft).get("attention_value_scale")
    return f"it is {scale}, and the values are not scaled" if scale not in (None, 1) else None


def _value_scale_at_the_top(draft: Draft) -> str | None:
    # Where both are there, the one in dflash_config is what a later release goes by.
    scale = None if "attention_value_scale" in _inner(draft) else draft.raw.get("attention_value_scale")
    return f"it is {scale}, and the values are not scaled" if scale not in (None, 1) else None


def _rotary_factor(draft: Draft) -> str | None:
    factor = number(draft.raw.get("partial_rotary_factor"))
    partial = factor is not None and 0 < factor < 1 and "rope_dim" not in _rope(draft)
    return f"it is {factor:g}, and the whole of each head is rotated" if partial else None


def _rope_dim(draft: Draft) -> str | None:
    rotated, head = whole(_rope(draft).get("rope_dim")), whole(draft.config.get("head_dim"))
    if not rotated or rotated == head:
        return None
    return f"it is {rotated}, and the whole of each head is rotated"


UNREAD: Final = (
    UnreadKey(
        "use_gemma_norm",
        "by which norms multiply by one more than their weight",
        "it is true",
        _gemma_norm,
        UPDATE,
        reader=IN_ATTENTION,
    ),
    UnreadKey(
        "dflash_config.projector_type",
        "which gives the draft a Domino projector",
        "it is domino",
        _domino,
        UPDATE,
        reader=IN_CONFIG,
    ),
    UnreadKey(
        "dflash_config.attention_sink_bias",
        SINKS,
        "it is true, in a draft that is no Nemotron 3.5 one",
        _sinks,
        UPDATE,
        reader=IN_CONFIG,
    ),
    UnreadKey(
        "dflash_config.attention_value_scale",
        VALUE_SCALE,
        "it is not 1",
        _value_scale,
        UPDATE,
        reader=IN_CONFIG,
    ),
    UnreadKey(
        "partial_rotary_factor",
        ROTATED,
        "it is above 0 and below 1, without rope_dim in rope_parameters",
        _rotary_factor,
        UPDATE,
        reader=IN_ATTENTION,
    ),
    UnreadKey(
        "rope_parameters.rope_dim",
        "which is the size of the part of a head that is rotated",
        "it is another size than head_dim",
        _rope_dim,
        UPDATE,
        reader=IN_ATTENTION,
    ),
)

_MENDS_INSTEAD: Final = {
    "add_swa_attention_sink_bias": UPDATE_FOR_SINKS,
    "attention_sink_bias": UPDATE_FOR_SINKS,
    "rope_parameters.partial_rotary_factor": (
        "If the draft was trained to rotate a part, serve it with SGLang 0.5.23 or later, with rope_dim in"
        " rope_parameters set to its size."
    ),
}

INSTEAD: Final = (
    UnreadKey(
        "attention_value_scale",
        VALUE_SCALE,
        "it is not 1, and dflash_config has none",
        _value_scale_at_the_top,
        "Serve the draft with SGLang 0.5.23 or later, with the key moved into dflash_config.",
    ),
    *(row._replace(mend=_MENDS_INSTEAD[row.key]) for row in unread_keys.UNREAD if row.key in _MENDS_INSTEAD),
)
"""Rows that stand here for those of the same key in the table of every SGLang."""

_INSTEAD: Final = {row.key: row for row in INSTEAD}
UNREAD_BY_ANY: Final = tuple(_INSTEAD.get(row.key, row) for row in unread_keys.UNREAD)
