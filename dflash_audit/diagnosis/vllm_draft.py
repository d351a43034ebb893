"""A draft as vLLM reads its config, for the rules that look at keys; no rule of its own.

Source: vLLM 0.33.0 `model_executor/models/qwen3_dflash.py` and the drafts beside it,
`models/beam/nvidia/dflash2.py`.
"""

from collections.abc import Mapping
from typing import Final

from dflash_audit.diagnosis.sglang_draft import BEAM, LAGUNA, Draft
from dflash_audit.engine_run import EngineRun
from dflash_audit.engines.vllm import architectures
from dflash_audit.sources.checkpoint import Checkpoint

GEMMA4_DRAFT: Final = "Gemma4DSparkModel"
XPRESS_DRAFT: Final = "Qwen3XPressModel"
"""Drafts that SGLang has no name for."""

AS_SGLANG_NAMES_THEM: Final[Mapping[str, str]] = {
    architectures.DFLASH2: "DFlash2DraftModel",
    architectures.BEAM: BEAM,
    architectures.LAGUNA: LAGUNA,
    architectures.LILICORR: "LiLiCorrDraftModel",
    architectures.DSPARK_OF_QWEN3: "Qwen3DSparkModel",
    architectures.XPRESS: XPRESS_DRAFT,
    architectures.PLAIN: "DFlashDraftModel",
    architectures.GEMMA4: GEMMA4_DRAFT,
}
"""Class of vLLM -> the class under which a table of keys knows such a draft."""

DSPARK: Final = frozenset(("Qwen3DSparkModel", GEMMA4_DRAFT))
"""The drafts, by those names, that vLLM serves with the method dspark."""

LAYERS_OF_THEIR_OWN: Final = frozenset({BEAM, LAGUNA, GEMMA4_DRAFT})
"""The drafts, as SGLang names them, that vLLM builds of other layers than `DFlashQwen3DecoderLayer`."""


def is_vllm(engine: str) -> bool:
    """Whether the engine is a release of vLLM, or vLLM as it is installed."""
    return engine.startswith(("vllm-", "vllm@"))


def read_draft(run: EngineRun, checkpoint: Checkpoint) -> Draft | None:
    """The draft as vLLM reads its config; None for another engine, or where it has no such drafts at all."""
    if not is_vllm(run.engine) or run.config is None or run.unserved is not None:
        return None
    known_as = AS_SGLANG_NAMES_THEM.get(run.model_class or "")
    if known_as is None:
        return None
    return Draft(run.engine, known_as, checkpoint.config, run.config, checkpoint.tensors)
