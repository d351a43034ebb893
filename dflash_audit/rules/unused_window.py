"""The config gives a sliding window, and no layer of the draft gets it.

The config's class rewrites the JSON before the engine sees it: Qwen3's drops `sliding_window` unless
`use_sliding_window` is true, and fills in `layer_types` that are missing, from `max_window_layers`. The
engine itself takes every layer for a full one where `layer_types` is null.

## Why it matters

Sliding layers without a window stop the engine, although config.json has one. Without `layer_types` nothing
stops: every layer attends to the whole context and to later tokens of its block, and the acceptance falls
once the context is longer than the window.

## Example

Before:

    "layer_types": ["sliding_attention", "sliding_attention"],
    "sliding_window": 2048

After:

    "layer_types": ["sliding_attention", "sliding_attention"],
    "sliding_window": 2048,
    "use_sliding_window": true

## How to fix

Give all three: `layer_types` with an entry a layer, `sliding_window`, and `use_sliding_window` true. If the
draft attends to everything, remove `sliding_window`.
"""

from collections.abc import Iterator

from dflash_audit.diagnosis.sglang_draft import Draft, read_draft, whole
from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding
from dflash_audit.how_many import how_many
from dflash_audit.sources.checkpoint import Checkpoint


def find(run: EngineRun, checkpoint: Checkpoint) -> Iterator[Finding]:
    """One finding if config.json gives a window that no layer gets.

    Source: transformers 5.19.0 `models/qwen3/configuration_qwen3.py`; SGLang 0.5.23
    `srt/speculative/dflash_utils.py`, `get_dflash_layer_types`.
    """
    draft = read_draft(run, checkpoint)
    window = whole(draft.raw.get("sliding_window")) if draft else None
    if draft is None or window is None:
        return
    said = _nulled(draft, window) or _without_layers(draft, window)
    if said is not None:
        message, hint = said
        yield Finding(
            "unused-window", "warning", run.engine, "sliding_window", message, hint, ("sliding_window",)
        )


def _nulled(draft: Draft, window: int) -> tuple[str, str] | None:
    """The window that the config's class drops although layers slide."""
    sliding = any(layer.sliding for layer in draft.attention())
    if not sliding or draft.config.get("sliding_window") is not None:
        return None
    said = draft.raw.get("use_sliding_window")
    state = "is missing" if said is None else "is not true"
    return (
        f"sliding_window {window} is dropped by the config's class because use_sliding_window {state}:"
        f" {draft.engine} finds sliding layers without a window.",
        "Set use_sliding_window to true.",
    )


def _without_layers(draft: Draft, window: int) -> tuple[str, str] | None:
    """The window that stays, for layers that nothing in config.json tells of."""
    layers = draft.attention()
    unused = layers and not any(layer.sliding for layer in layers)
    if not unused or draft.given("layer_types") or draft.config.get("sliding_window") is None:
        return None
    return (
        f"sliding_window is {window}, and config.json has no layer_types: {draft.engine} takes"
        f" {how_many(len(layers), 'layer')} for full attention, which sees the whole context.",
        "Give layer_types with an entry a layer, or remove sliding_window.",
    )
