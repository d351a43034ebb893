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
from collections.abc import Iterator

from dflash_audit.diagnosis.stopped import stopped
from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding


def find(run: EngineRun) -> Iterator[Finding]:
    """One finding if the engine stops at the config."""
    return stopped(run, "config", "refused-config", "config.json", _hint(run))


def _hint(run: EngineRun) -> str:
    # Keys have an underscore or two; a word of the sentence has none.
    keys = dict.fromkeys(re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", run.refusal.reason if run.refusal else ""))
    return (
        f"Mend {' or '.join(keys) or 'the field'} in config.json: the engine reads it before anything else."
    )
