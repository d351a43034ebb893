"""The engine does not take the config.

The class that Hugging Face's transformers has for the `model_type`, or the engine's own reading after it,
raises on config.json: a field of the wrong type, a list of another length than the number of layers, an
unknown quantization method.

## Why it matters

The server stops before it looks at a single weight. Nothing else in the report is reached.

## Example

Before, `layer_types` is one entry short:

    "num_hidden_layers": 2, "layer_types": ["full_attention"]

After:

    "num_hidden_layers": 2, "layer_types": ["full_attention", "full_attention"]

## How to fix

Mend the field that the message names. Where it was lost in an export, take it from the config of the draft
that was exported.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from dflash_audit.diagnosis.stopped import stopped
from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding
from dflash_audit.sources.checkpoint import Checkpoint

NO_METHOD: Final = re.compile("unknown quantization method", flags=re.IGNORECASE)
RAISED: Final = re.compile(r"^\w+(Error|Exception): ")
"""The name of an error, with which what an installed engine says begins."""

OTHER_METHOD: Final = (
    "Name a method that this engine has as quant_method in quantization_config, or serve the draft with an"
    " engine that has this one."
)


def find(run: EngineRun, checkpoint: Checkpoint) -> Iterator[Finding]:
    """One finding if the engine stops at the config."""
    if run.refusal is not None and run.refusal.stage == "config":
        hint = _hint(run.refusal.reason, checkpoint.config)
        yield from stopped(run, "config", "refused-config", "config.json", hint)


def _hint(reason: str, config: Mapping[str, Any]) -> str:
    if NO_METHOD.match(reason):
        return OTHER_METHOD
    named = " or ".join(_named(reason, config)) or "what the message tells of"
    return f"Mend {named} in config.json: the engine reads it before anything else."


def _named(reason: str, config: Mapping[str, Any]) -> list[str]:
    """The keys that a refusal names: those that the config has, or else what can be nothing but a key."""
    # Keys have an underscore or two; a word of the sentence has none.
    underscored = [*dict.fromkeys(re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", reason))]
    known = {*_keys(config)}
    if there := [key for key in underscored if key in known]:
        return there
    # What stands behind a colon are Python's words, which are no keys.
    words = re.findall(r"[a-z]\w*", RAISED.sub("", reason).partition(": ")[0])
    return [word for word in words if word in known][:1] or underscored


def _keys(config: Mapping[str, Any]) -> Iterator[str]:
    """Every key at the top of the config, and of the objects there."""
    for key, value in config.items():
        yield key
        if isinstance(value, Mapping):
            yield from value
