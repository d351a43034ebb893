"""A key is missing from config.json, and a default takes its place.

The engine asks for no key of the attention, the rope or the norms: what config.json does not give, the
config's class or the engine fills in.

- `is_causal`: sliding layers are causal by default, full ones are not. DFlash2 and Muse drafts slide in every
  layer, and are trained to see the whole block.
- `rope_theta`, where neither the top of config.json nor its rope parameters give it: 10000 with most classes.
- `rms_norm_eps`: 0.000001 with most classes.

## Why it matters

Nothing fails. Without `is_causal` no token of a block sees a later one, with another `rope_theta` every
position is turned by another angle, and the draft accepts little. Another `rms_norm_eps` changes little:
that is a note. A config that gives none of its numbers leaves them all to its class on purpose, so a number
counts as missing only where those that exporters write beside it are given.

## Example

Before, a DFlash2 draft:

    "layer_types": ["sliding_attention", "sliding_attention"],
    "rope_parameters": {"rope_type": "default"}

After:

    "is_causal": false,
    "layer_types": ["sliding_attention", "sliding_attention"],
    "rope_parameters": {"rope_theta": 10000000, "rope_type": "default"}

## How to fix

Set the key to the value that the draft was trained with. If that is the default, write the default.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from dflash_audit.diagnosis.sglang_draft import SELECTORS, Draft, read_draft
from dflash_audit.engine_run import EngineRun
from dflash_audit.engines.sglang.dflash_config import text_config
from dflash_audit.finding import Finding, Severity
from dflash_audit.sources.checkpoint import Checkpoint

WHOLE_BLOCK: Final = SELECTORS | {"MuseGlimmerAssistantModel"}
"""Classes whose drafts are published with `is_causal` false beside layers that all slide."""

ROPES: Final = ("rope_parameters", "rope_scaling")


class MissingKey(NamedTuple):
    """A key, and what its default does to a draft that lacks it; None where nothing is to be said."""

    key: str
    consequence: Callable[[Draft], str | None]
    mend: str
    severity: Severity = "warning"


def find(run: EngineRun, checkpoint: Checkpoint) -> Iterator[Finding]:
    """One finding a key that is missing.

    Public record: z-lab/dflash#168 (`is_causal`), Model-Optimizer#1693 (`rope_theta`). Source: SGLang 0.5.23
    `srt/models/dflash.py`, `_get_dflash_attention_type` and `DFlashAttention`;
    `srt/utils/hf_transformers/common.py`, `get_rope_config`.
    """
    draft = read_draft(run, checkpoint)
    for row in MISSING if draft else ():
        assert draft is not None
        consequence = row.consequence(draft)
        if consequence is not None:
            yield Finding(
                rule="missing-key",
                severity=row.severity,
                engine=run.engine,
                subject=row.key,
                message=f"config.json gives no {row.key}: {consequence}.",
                hint=row.mend,
                subjects=(row.key,),
            )


def _is_causal(draft: Draft) -> str | None:
    layers = draft.attention()
    if draft.model_class not in WHOLE_BLOCK or not layers or not all(layer.sliding for layer in layers):
        return None
    # A `causal` in dflash_config is another engine's key for the same: unread-key tells of it.
    if text_config(draft.config).get("is_causal") is not None or "causal" in draft.inner:
        return None
    return (
        f"{draft.engine} takes all {len(layers)} sliding layers for causal ones, where no token of a block"
        " sees a later one, and published drafts of this class are trained to see the whole block"
    )


def _rope_theta(draft: Draft) -> str | None:
    rope = next((key for key in ROPES if isinstance(draft.raw.get(key), Mapping) and draft.raw[key]), None)
    expected = rope or (_stands(draft.raw, "rms_norm_eps") and _stands(draft.raw, "hidden_act"))
    taken = draft.rope_base
    if taken is None or not expected or _stands(draft.raw, "rope_theta"):
        return None
    inside = f"{rope} has none either, and " if rope else ""
    return f"{inside}{draft.engine} takes the default {taken:.12g}"


def _rms_norm_eps(draft: Draft) -> str | None:
    expected = _stands(draft.raw, "rope_theta") and _stands(draft.raw, "hidden_act")
    taken = draft.config.get("rms_norm_eps", 1e-6)
    if not expected or _stands(draft.raw, "rms_norm_eps") or not isinstance(taken, int | float):
        return None
    return f"{draft.engine} takes the default {taken:g}, and drafts are published with 1e-06 and with 1e-05"


def _stands(value: Any, key: str) -> bool:
    """Whether a key stands anywhere in the config, also as the end of another one's name."""
    # With a list of its own: a config may be nested as deep as Python's JSON takes it.
    open_values = [value]
    while open_values:
        match open_values.pop():
            case dict() as found:
                if any(name.endswith(key) for name in found):
                    return True
                open_values += found.values()
            case list() as found:
                open_values += found
    return False


MISSING: Final = (
    MissingKey(
        "is_causal",
        _is_causal,
        "Set is_causal at the top of config.json: false if the tokens of a block see later ones, as in the"
        " published drafts of this class, true if they do not.",
    ),
    MissingKey("rope_theta", _rope_theta, "Set rope_theta to the base that the draft was trained with."),
    MissingKey(
        "rms_norm_eps",
        _rms_norm_eps,
        "Set rms_norm_eps to what the draft was trained with.",
        "note",
    ),
)
