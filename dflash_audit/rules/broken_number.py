"""A number in config.json makes the draft compute nonsense, or stops it at its first request.

The engine takes these numbers as they are written, and Python's JSON takes `NaN` and `Infinity`.

- `rms_norm_eps` stands under a square root. NaN makes every output NaN, infinity makes every norm zero, and
  below zero a row is NaN whose numbers are smaller. Zero divides a row of zeros by zero.
- `rope_theta` is raised to fractions. NaN, zero and a number below zero make the angles NaN or infinite, and
  at infinity only the first pair of a head's numbers is turned at all.
- `selector_top_k` candidates are picked out of the vocabulary: of more than it has, none can be.
- `output_multiplier` and `attention_value_scale` are factors: NaN spreads to all that they are multiplied
  with, and a multiplier of zero or below takes its order from the logits. vLLM does not start with such a
  one.
- `final_logit_softcapping` divides the logits and multiplies them again: infinity leaves NaN of them. NaN and
  what is not above zero is no cap at all, but for vLLM's DFlash2 of Beam, which caps by any number.
- `sliding_window` is counted in tokens. SGLang takes zero and less for no window at all; vLLM takes a number
  below zero as it is, and keeps nothing of the context.

## Why it matters

The engine reads such a number without a word, builds, loads and starts. The draft then answers NaN, or
forgets where its tokens stand, and no token of it is accepted; or the server dies on its first request.

## Example

Before:

    "rms_norm_eps": NaN

After:

    "rms_norm_eps": 1e-06

## How to fix

Set the number that the draft was trained with; its training config or the original draft has it.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from dflash_audit.diagnosis.sglang_draft import BEAM, SELECTORS, Draft, number, read_draft, whole
from dflash_audit.diagnosis.vllm_draft import GEMMA4_DRAFT, LAYERS_OF_THEIR_OWN, is_vllm
from dflash_audit.diagnosis.vllm_draft import read_draft as read_by_vllm
from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding, Severity
from dflash_audit.sources.checkpoint import Checkpoint

HINT: Final = "Set the number that the draft was trained with: its training config or the original has it."
WINDOW_HINT: Final = (
    "Set sliding_window to the window that the draft was trained with; if it had none, name its layers"
    " full_attention in layer_types."
)

Broken = tuple[Severity, str]
"""How bad a number is, and what it does."""

LOST_LOGITS: Final[Broken] = (
    "error",
    "the logits that the selector goes by tell nothing of the tokens any more",
)

STOPS_VLLM: Final[Broken] = (
    "error",
    "stops as it starts: the top of its logits is taken with a factor above zero alone",
)
"""In the step of the draft that measures the memory.

Source: vLLM 0.33.0 `model_executor/layers/logits_processor.py`, `get_top_k_tokens`;
`v1/worker/gpu/model_runner.py`, `profile_run`.
"""


def find(run: EngineRun, checkpoint: Checkpoint) -> Iterator[Finding]:
    """One finding a number, for a draft that the engine loads.

    Source: SGLang 0.5.23 `srt/layers/layernorm.py` (`RMSNorm`), `srt/layers/rotary_embedding/base.py`
    (`_compute_inv_freq`), `srt/models/dflash.py` (`candidate_topk`, `_transform_unary_logits`),
    `srt/layers/attention/triton_backend.py`; vLLM 0.33.0 `model_executor/layers/layernorm.py`,
    `logits_processor.py` (`get_top_k_tokens`), `v1/worker/gpu/spec_decode/dflash2/speculator.py`,
    `v1/core/single_type_kv_cache_manager.py` (`get_num_skipped_tokens`),
    `model_executor/models/qwen3_dflash2.py` and `models/beam/nvidia/dflash2.py` (the cap). They check none of
    these.
    """
    if run.plan is None or run.refusal is not None:
        return
    draft = read_draft(run, checkpoint) or read_by_vllm(run, checkpoint)
    for key, (value, broken) in NUMBERS.items() if draft else ():
        assert draft is not None
        found = value(draft)
        said = broken(found, draft) if found is not None else None
        if said is not None:
            severity, what = said
            message = f"{key} is {_shown(found)}: {draft.engine} takes it as it is, and {what}."
            hint = WINDOW_HINT if key == WINDOW else HINT
            yield Finding("broken-number", severity, run.engine, key, message, hint, (key,))


def _shown(value: float | None) -> str:
    return f"{value:g}" if isinstance(value, float) and value.is_integer() else repr(value)


def _epsilon(value: float, draft: Draft) -> Broken | None:
    if math.isnan(value):
        return "error", "every number that the draft computes is NaN"
    if math.isinf(value):
        return "error", "every norm of the draft comes out as zero, or as NaN below zero"
    if value < 0:
        return "warning", "a row whose mean square is smaller comes out of its norm as NaN"
    return ("warning", "a row of zeros comes out of its norm as NaN") if value == 0 else None


def _base(value: float, draft: Draft) -> Broken | None:
    if math.isnan(value) or value <= 0:
        return "error", "the angles by which it turns positions are NaN or infinite, and so are its outputs"
    if math.isinf(value):
        return (
            "error",
            "turns only the first pair of a head by its position: the draft does not see the others'",
        )
    return None


def _candidates(value: float, draft: Draft) -> Broken | None:
    tokens = whole(draft.config.get("vocab_size"))
    if draft.model_class not in SELECTORS or tokens is None:
        return None
    if value > tokens > 0:
        return "error", f"stops at its first request: a vocabulary of {tokens} has no {value:.12g} candidates"
    return ("error", "the selector has nothing to choose from") if value <= 0 else None


def _multiplier(value: float, draft: Draft) -> Broken | None:
    # vLLM's Beam reads none.
    if draft.model_class not in SELECTORS or _beam_of_vllm(draft) or 0 < value < math.inf:
        return None
    return STOPS_VLLM if is_vllm(draft.engine) and value <= 0 else LOST_LOGITS


def _cap(value: float, draft: Draft) -> Broken | None:
    if draft.model_class not in SELECTORS:
        return None
    # vLLM's Beam takes the number as it is; the others take it for no cap unless it is above zero.
    lost = value == 0 or not math.isfinite(value) if _beam_of_vllm(draft) else value == math.inf
    return LOST_LOGITS if lost else None


def _beam_of_vllm(draft: Draft) -> bool:
    return is_vllm(draft.engine) and draft.model_class == BEAM


def _value_scale(value: float, draft: Draft) -> Broken | None:
    own_layers = is_vllm(draft.engine) and draft.model_class in LAYERS_OF_THEIR_OWN
    if math.isfinite(value) or own_layers:
        return None
    return "error", "all that it is multiplied with is lost"


def _window(value: float, draft: Draft) -> Broken | None:
    if value > 0 or not any(layer.sliding for layer in draft.attention()):
        return None
    if is_vllm(draft.engine):
        return "warning", "its sliding layers keep nothing of the context"
    return "warning", "its sliding layers attend to the whole context"


def _rope_theta(draft: Draft) -> float | None:
    if not is_vllm(draft.engine):
        return draft.rope_base
    # Gemma 4 has a base for each kind of layers.
    rope = draft.config.get("rope_parameters") if draft.model_class != GEMMA4_DRAFT else None
    return number(rope.get("rope_theta")) if isinstance(rope, Mapping) else None


def _nested(key: str) -> Callable[[Draft], float | None]:
    return lambda draft: number(draft.inner.get(key))


WINDOW: Final = "sliding_window"

Numbers = Mapping[str, tuple[Callable[[Draft], float | None], Callable[[Any, Draft], Broken | None]]]

NUMBERS: Final[Numbers] = {
    "rms_norm_eps": (lambda draft: number(draft.config.get("rms_norm_eps")), _epsilon),
    "rope_theta": (_rope_theta, _base),
    "selector_top_k": (_nested("selector_top_k"), _candidates),
    "output_multiplier": (_nested("output_multiplier"), _multiplier),
    "final_logit_softcapping": (_nested("final_logit_softcapping"), _cap),
    "attention_value_scale": (_nested("attention_value_scale"), _value_scale),
    WINDOW: (lambda draft: number(draft.config.get(WINDOW)), _window),
}
