"""The config is written in speculators' dialect, which SGLang does not read.

speculators keeps the draft's layers in `transformer_layer_config` and its own keys flat at the top. vLLM
translates that; SGLang reads a Hugging Face config with a `dflash_config`.

## Why it matters

SGLang finds no `model_type` and stops; with one added it finds neither taps nor mask nor convolutions.

## Example

Before:

    "speculators_model_type": "dflash",
    "aux_hidden_state_layer_ids": [2, 10, 18, 26, 34],
    "mask_token_id": 151669,
    "transformer_layer_config": {"hidden_size": 4096, "num_hidden_layers": 5}

After:

    "architectures": ["DFlashDraftModel"], "model_type": "qwen3",
    "hidden_size": 4096, "num_hidden_layers": 5,
    "dflash_config": {"mask_token_id": 151669, "target_layer_ids": [1, 9, 17, 25, 33]}

## How to fix

Write the config anew: the fields of `transformer_layer_config` at the top, the draft's own in
`dflash_config`, and each tapped layer less one. Or serve the draft with vLLM.
"""

from collections.abc import Iterator

from dflash_audit.diagnosis.sglang_draft import is_sglang
from dflash_audit.diagnosis.speculators import marks
from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding
from dflash_audit.sources.checkpoint import Checkpoint


def find(run: EngineRun, checkpoint: Checkpoint) -> Iterator[Finding]:
    """One finding if config.json has a key that only speculators writes."""
    found = marks(checkpoint.config)
    if not is_sglang(run) or not found:
        return
    yield Finding(
        rule="speculators-config",
        severity="warning",
        engine=run.engine,
        subject=found[0],
        message=(
            f"{', '.join(found)}: config.json is written as speculators writes it, and {run.engine} does not"
            " read that dialect."
        ),
        hint=(
            "Write the fields of transformer_layer_config at the top and the draft's own in dflash_config,"
            " each id of aux_hidden_state_layer_ids less one as target_layer_ids; or serve it with vLLM."
        ),
        subjects=tuple(found),
    )
