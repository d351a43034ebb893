"""The real vLLM where there is no GPU, as the audit's `vllm@installed` starts it, and silent."""

import logging
import warnings

from dflash_audit.cards import CARDS, DEFAULT_CARD
from dflash_audit.engines.vllm_installed.child.platform import start_vllm


def start(capability: int = CARDS[DEFAULT_CARD]) -> str:
    """Import vLLM for a card of this compute capability (times ten); the name of the engine."""
    logging.disable(logging.CRITICAL)
    warnings.filterwarnings("ignore")
    return f"vllm-{start_vllm(capability)}"
