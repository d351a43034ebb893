"""One draft's record: what SGLang built, loaded, dropped and refused."""

from typing import Final

from sglang.srt.model_loader.weight_utils import default_weight_loader

from dflash_audit.engines.installed.child.attempt import attempt
from dflash_audit.engines.installed.child.built import Record
from dflash_audit.engines.installed.child.watch import Watch
from dflash_audit.engines.sglang_installed.child.draft import Draft, serve_one_rank

SINKS_BACKEND: Final = "trtllm_mha"
BACKEND_FLAG: Final = "--speculative-draft-attention-backend"
"""Source: SGLang 0.5.23 `srt/models/dflash.py`, `DFlashAttention.__init__`."""


def prepare() -> None:
    """What has to hold before the first draft."""
    serve_one_rank(None)


def record(folder: str, quantization: str | None, attention_backend: str | None) -> Record:
    """What the installed SGLang does with the draft of a folder, as `attempt` records it."""
    found = _attempt(folder, quantization, attention_backend)
    if found["stage"] == "build" and attention_backend is None:
        # Attention sinks are refused for the lack of a flag, not for the draft.
        again = _attempt(folder, quantization, SINKS_BACKEND)
        if again["stage"] != "build":
            return {**again, "flags": [[f"{BACKEND_FLAG} {SINKS_BACKEND}", found["error"]]]}
    return found


def _attempt(folder: str, quantization: str | None, attention_backend: str | None) -> Record:
    serve_one_rank(attention_backend)
    return attempt(Draft(folder, quantization), Watch(default_weight_loader))
